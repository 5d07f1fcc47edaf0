// SPDX-License-Identifier: Apache-2.0
// The model: each draw belongs to a peer or a pair of peers, never to an order of events.
#include "sim/model.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/decimal.h"

// Purposes of draws, so that a draw for one does not shift those for another.
enum {
  OF_CLASS = 1,
  OF_NAT,
  OF_ISP,
  OF_RIDER,
  OF_POLLUTER,
  OF_PLACE,
  OF_PATH,
  OF_ARRIVAL,
  OF_STAY,
  OF_FAILURE
};

int64_t weft_sim_link_send(weft_sim_link *link, uint64_t bits_per_s, size_t bytes, int64_t now_us) {
  if (link->free_us < now_us) {
    link->free_us = now_us;
    link->rest = 0;
  }
  if (bits_per_s == 0)
    return link->free_us;
  const uint64_t work = (uint64_t)bytes * 8u * 1000000u + link->rest;
  link->free_us += (int64_t)(work / bits_per_s);
  link->rest = work % bits_per_s;
  return link->free_us;
}

int64_t weft_sim_link_queue(weft_sim_link *link, uint64_t bits_per_s, int64_t queue_us,
                            size_t bytes, int64_t now_us) {
  return link->free_us - now_us > queue_us ? -1
                                           : weft_sim_link_send(link, bits_per_s, bytes, now_us);
}

bool weft_sim_loses(double loss, double burst, bool *bad, weft_sim_rng *rng) {
  if (loss <= 0)
    return false;
  const double chance = weft_sim_unit(weft_sim_rng_next(rng));
  if (burst <= 1)
    return chance < loss;
  const double leave = 1 / burst, enter = leave * loss / (1 - loss);
  *bad = *bad ? chance >= leave : chance < enter;
  return *bad;
}

static double unit(const weft_sim_model *m, uint64_t purpose, uint64_t a, uint64_t b) {
  return weft_sim_unit(weft_sim_draw(m->parameters->seed, purpose, a, b));
}

size_t weft_sim_class_of(const weft_sim_model *m, uint32_t peer) {
  const weft_sim_parameters *p = m->parameters;
  double at = unit(m, OF_CLASS, peer, 0) * m->share_sum;
  for (size_t i = 0; i + 1 < p->class_count; i++) {
    if (at < p->classes[i].share)
      return peer ? i : 0;
    at -= p->classes[i].share;
  }
  return peer ? p->class_count - 1 : 0;
}

uint32_t weft_sim_isp_of(const weft_sim_model *m, uint32_t peer) {
  return m->parameters->isps > 1
             ? (uint32_t)(unit(m, OF_ISP, peer, 0) * (double)m->parameters->isps)
             : 0;
}

bool weft_sim_behind_nat(const weft_sim_model *m, uint32_t peer) {
  return peer && unit(m, OF_NAT, peer, 0) < m->parameters->classes[weft_sim_class_of(m, peer)].nat;
}

bool weft_sim_symmetric_nat(const weft_sim_model *m, uint32_t peer) {
  return weft_sim_behind_nat(m, peer) &&
         unit(m, OF_NAT, peer, 1) < m->parameters->classes[weft_sim_class_of(m, peer)].symmetric;
}

bool weft_sim_is_free_rider(const weft_sim_model *m, uint32_t peer) {
  return peer && unit(m, OF_RIDER, peer, 0) < m->parameters->free_riders;
}

bool weft_sim_is_polluter(const weft_sim_model *m, uint32_t peer) {
  return peer && unit(m, OF_POLLUTER, peer, 0) < m->parameters->polluters;
}

bool weft_sim_is_failing(const weft_sim_model *m, uint32_t peer) {
  return peer && m->arrive_us[peer] < m->parameters->failure_us &&
         unit(m, OF_FAILURE, peer, 0) < m->parameters->failure_share;
}

// Peers of one ISP lie together, around the ISP's own point.
void weft_sim_place_of(const weft_sim_model *m, uint32_t peer, double *x, double *y) {
  const uint32_t isp = weft_sim_isp_of(m, peer);
  const double spread = m->parameters->isps > 1 ? 0.15 : 0.5;
  const double centre_x = m->parameters->isps > 1 ? 0.15 + 0.7 * unit(m, OF_PLACE, isp, 2) : 0.5;
  const double centre_y = m->parameters->isps > 1 ? 0.15 + 0.7 * unit(m, OF_PLACE, isp, 3) : 0.5;
  *x = centre_x + spread * (2 * unit(m, OF_PLACE, peer, 0) - 1);
  *y = centre_y + spread * (2 * unit(m, OF_PLACE, peer, 1) - 1);
}

static int64_t path_us(const weft_sim_model *m, uint32_t a, uint32_t b) {
  const weft_sim_parameters *p = m->parameters;
  const uint32_t low = a < b ? a : b, high = a < b ? b : a;
  const double range = (double)(p->delay_max_us - p->delay_min_us);
  if (p->latency == WEFT_SIM_MATRIX)
    return p
        ->matrix_us[weft_sim_isp_of(m, low) % p->regions][weft_sim_isp_of(m, high) % p->regions];
  if (p->latency == WEFT_SIM_UNIFORM)
    return p->delay_min_us + (int64_t)(range * unit(m, OF_PATH, low, high));
  double ax, ay, bx, by;
  weft_sim_place_of(m, a, &ax, &ay);
  weft_sim_place_of(m, b, &bx, &by);
  const double distance = sqrt((ax - bx) * (ax - bx) + (ay - by) * (ay - by)) / sqrt(2.0);
  return p->delay_min_us + (int64_t)(range * distance);
}

static int64_t source_delay_us(const weft_sim_parameters *p) {
  return p->source_delay_us == WEFT_SIM_NEVER ? p->classes[0].delay_us : p->source_delay_us;
}

static int64_t access_us(const weft_sim_model *m, uint32_t peer) {
  return peer ? m->parameters->classes[weft_sim_class_of(m, peer)].delay_us
              : source_delay_us(m->parameters);
}

int64_t weft_sim_delay_us(const weft_sim_model *m, uint32_t a, uint32_t b) {
  return path_us(m, a, b) + access_us(m, a) + access_us(m, b);
}

int64_t weft_sim_least_delay_us(const weft_sim_parameters *p) {
  int64_t path = p->delay_min_us, access = INT64_MAX;
  if (p->latency == WEFT_SIM_MATRIX) {
    path = INT64_MAX;
    for (size_t i = 0; i < p->regions; i++)
      for (size_t j = 0; j < p->regions; j++)
        path = p->matrix_us[i][j] < path ? p->matrix_us[i][j] : path;
  }
  for (size_t i = 0; i < p->class_count; i++)
    access = p->classes[i].delay_us < access ? p->classes[i].delay_us : access;
  const int64_t source_us = source_delay_us(p); // the path joins two peers, or the source and one
  return path + access + (source_us < access ? source_us : access);
}

// --- Coming and going

static double exponential(double mean, double chance) { return -mean * log1p(-chance); }

#define BLANKS " \t\r\n"

// Parses an arrival: seconds, and how long the peer stays (-1: not given). Refuses anything else on
// the line: in a table with commas every peer would seem to stay.
static bool read_arrival(const char *line, double *at, double *stay) {
  char *end;
  *at = weft_sim_decimal(line, &end);
  if (end == line || !(*at >= 0 && *at < 1e9))
    return false;
  *stay = -1;
  if (!end[strspn(end, BLANKS)])
    return true;
  const char *second = end;
  *stay = weft_sim_decimal(second, &end);
  return end != second && strspn(second, BLANKS) > 0 && *stay >= 0 && *stay < 1e9 &&
         !end[strspn(end, BLANKS)];
}

// Reads one arrival per line: seconds and, optionally, the length of the stay. A file without any
// is WEFT_E_MALFORMED.
static weft_status read_trace(weft_sim_model *m) {
  const weft_sim_parameters *p = m->parameters;
  FILE *file = fopen(p->trace_file, "r");
  if (!file)
    return WEFT_E_IO;
  weft_status status = WEFT_OK;
  char line[256];
  uint32_t i = 1;
  size_t number = 0;
  bool ended = true; // the last read reached a line's end; the rest of a longer line must be blank
  while (status == WEFT_OK && fgets(line, sizeof line, file)) {
    double at, stay;
    number += ended;
    ended = strchr(line, '\n') != NULL;
    if (line[0] == '#' || !line[strspn(line, BLANKS)]) {
      for (int c = 0; !ended; ended = c == '\n' || c == EOF)
        c = getc(file); // skip the rest of a long comment
      continue;
    }
    if (!read_arrival(line, &at, &stay) || (int64_t)(at * 1e6) < m->arrive_us[i - 1])
      status = WEFT_E_MALFORMED; // arrivals must be in order: peers are numbered by it
    else if (i > p->peers)
      status = WEFT_E_BUFFER;
    if (status != WEFT_OK) {
      m->trace_line = number;
      break;
    }
    m->arrive_us[i] = (int64_t)(at * 1e6);
    if (stay >= 0)
      m->leave_us[i] = m->arrive_us[i] + (int64_t)(stay * 1e6);
    i++;
  }
  if (status == WEFT_OK)
    status = ferror(file) ? WEFT_E_IO : i > 1 ? WEFT_OK : WEFT_E_MALFORMED;
  const int why = errno;
  fclose(file);
  errno = why;
  for (; i <= p->peers; i++)
    m->arrive_us[i] = WEFT_SIM_NEVER;
  return status;
}

static void draw_arrivals(weft_sim_model *m) {
  const weft_sim_parameters *p = m->parameters;
  const uint32_t rush =
      p->arrival == WEFT_SIM_FLASH ? (uint32_t)(p->flash_share * (double)p->peers) : 0;
  double at_s = 0;
  for (uint32_t i = 1; i <= p->peers; i++) {
    const double chance = unit(m, OF_ARRIVAL, i, 0);
    if (p->arrival == WEFT_SIM_TOGETHER) {
      m->arrive_us[i] = (int64_t)(chance * WEFT_SIM_TOGETHER_US); // not all in the same microsecond
    } else if (i <= rush) {
      m->arrive_us[i] = (int64_t)(chance * (double)p->flash_us);
    } else {
      at_s += exponential(1 / p->arrivals_per_s, chance);
      m->arrive_us[i] = weft_sim_after(0, at_s * 1e6);
    }
  }
  weft_sim_sort_times(m->arrive_us + 1, p->peers);
}

static void draw_departures(weft_sim_model *m) {
  const weft_sim_parameters *p = m->parameters;
  for (uint32_t i = 1; i <= p->peers; i++) {
    if (m->arrive_us[i] == WEFT_SIM_NEVER)
      continue;
    const double chance = unit(m, OF_STAY, i, 0);
    double stay_s = -1;
    if (p->departure == WEFT_SIM_EXPONENTIAL)
      stay_s = exponential(p->stay_mean_s, chance);
    else if (p->departure == WEFT_SIM_PARETO) // mean and alpha determine the least stay
      stay_s = p->stay_mean_s * (p->pareto_alpha - 1) / p->pareto_alpha *
               pow(1 - chance, -1 / p->pareto_alpha);
    if (stay_s >= 0 && stay_s < 1e9 && m->leave_us[i] == WEFT_SIM_NEVER) // keep a trace's stays
      m->leave_us[i] = m->arrive_us[i] + (int64_t)(stay_s * 1e6);
    if (p->failure_us < m->leave_us[i] && weft_sim_is_failing(m, i))
      m->leave_us[i] = p->failure_us;
  }
}

static weft_status gather_isps(weft_sim_model *m) {
  const uint32_t peers = m->parameters->peers + 1, isps = m->parameters->isps;
  uint32_t *end = calloc((size_t)isps + 1, sizeof *end); // at first shifted by one
  m->by_isp = malloc(peers * sizeof *m->by_isp);
  m->of_isp = calloc(isps, sizeof *m->of_isp);
  weft_status status = end && m->by_isp && m->of_isp ? WEFT_OK : WEFT_E_NOMEM;
  for (uint32_t i = 0; status == WEFT_OK && i < peers; i++)
    end[weft_sim_isp_of(m, i) + 1]++;
  for (uint32_t i = 0; status == WEFT_OK && i < isps; i++)
    end[i + 1] += end[i];
  for (uint32_t i = 0; status == WEFT_OK && i < peers; i++)
    m->by_isp[end[weft_sim_isp_of(m, i)]++] = i;
  for (uint32_t i = 0; status == WEFT_OK && i < isps; i++) {
    const uint32_t first = i ? end[i - 1] : 0;
    status = weft_sim_crowd_init(&m->of_isp[i], m->arrive_us, m->leave_us, m->by_isp + first,
                                 end[i] - first);
  }
  free(end);
  return status;
}

weft_status weft_sim_model_init(weft_sim_model *m, const weft_sim_parameters *p) {
  *m = (weft_sim_model){.parameters = p, .window_us = weft_sim_least_delay_us(p)};
  for (size_t i = 0; i < p->class_count; i++)
    m->share_sum += p->classes[i].share;
  m->arrive_us = calloc((size_t)p->peers + 1, sizeof *m->arrive_us);
  m->leave_us = calloc((size_t)p->peers + 1, sizeof *m->leave_us);
  if (!m->arrive_us || !m->leave_us)
    return WEFT_E_NOMEM;
  for (uint32_t i = 0; i <= p->peers; i++)
    m->leave_us[i] = WEFT_SIM_NEVER;
  if (p->arrival == WEFT_SIM_TRACE)
    WEFT_TRY(read_trace(m));
  else
    draw_arrivals(m);
  draw_departures(m);
  if (p->kind != WEFT_SIM_SWARM ||
      (p->topology != WEFT_SIM_TRACKER && p->topology != WEFT_SIM_INVITED))
    return WEFT_OK;
  WEFT_TRY(weft_sim_crowd_init(&m->all, m->arrive_us, m->leave_us, NULL, p->peers + 1));
  return p->isps > 1 && p->isp_local > 0 ? gather_isps(m) : WEFT_OK;
}

void weft_sim_model_clear(weft_sim_model *m) {
  free(m->arrive_us);
  free(m->leave_us);
  m->arrive_us = m->leave_us = NULL;
  weft_sim_crowd_clear(&m->all);
  for (uint32_t i = 0; m->of_isp && i < m->parameters->isps; i++)
    weft_sim_crowd_clear(&m->of_isp[i]);
  free(m->of_isp);
  free(m->by_isp);
  m->of_isp = NULL;
  m->by_isp = NULL;
}

uint32_t weft_sim_arrived(const weft_sim_model *m, int64_t now_us) {
  uint32_t low = 1, high = m->parameters->peers + 1; // the first that arrives later
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (m->arrive_us[middle] <= now_us)
      low = middle + 1;
    else
      high = middle;
  }
  return low - 1;
}

uint32_t weft_sim_find_peer(const weft_sim_model *m, uint32_t peer, int64_t now_us,
                            weft_sim_rng *rng) {
  const weft_sim_parameters *p = m->parameters;
  const bool local = p->isps > 1 && weft_sim_unit(weft_sim_rng_next(rng)) < p->isp_local;
  const weft_sim_crowd *mates = local ? &m->of_isp[weft_sim_isp_of(m, peer)] : NULL;
  for (int attempt = 0; attempt < 64; attempt++) {
    // The first half of the attempts is for the peer's own provider, where it may be the only peer.
    const weft_sim_crowd *crowd = local && attempt < 32 ? mates : &m->all;
    const uint32_t other = weft_sim_crowd_draw(crowd, now_us, rng);
    if (other != WEFT_SIM_NOBODY_CAME && other != peer && m->leave_us[other] > now_us)
      return other;
  }
  return peer;
}

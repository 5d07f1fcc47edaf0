// SPDX-License-Identifier: Apache-2.0
// Values of keys as text, in both directions.
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/decimal.h"
#include "sim/scenario/keys.h"

#define S 1e6

// --- Numbers

// Parses a number; *rest: what follows it and any blanks.
static bool number(const char *text, double *out, const char **rest) {
  char *end;
  *out = weft_sim_decimal(text, &end);
  const bool any = end != text; // blanks alone are not a number
  while (*end == ' ')
    end++;
  *rest = end;
  return any && isfinite(*out);
}

// Removes the rounding error of a product: 8.2 * 1e6 is not 8200000.
static double near_whole(double product) {
  const double whole = round(product);
  return fabs(product - whole) <= DBL_EPSILON * fabs(whole) ? whole : product;
}

bool weft_sim_parse_quantity(const char *text, double *out) {
  static const char letters[] = "kMGT";
  const char *rest;
  if (!number(text, out, &rest))
    return false;
  if (*rest) {
    const char letter = *rest == 'K' ? 'k' : *rest;
    const char *at = strchr(letters, letter);
    if (!at)
      return false;
    const double base = rest[1] == 'i' ? 1024 : 1000;
    *out = near_whole(*out * pow(base, (double)(at - letters + 1)));
    rest += rest[1] == 'i' ? 2 : 1;
  }
  return *rest == '\0';
}

bool weft_sim_parse_share(const char *text, double *out) {
  const char *rest;
  if (!number(text, out, &rest))
    return false;
  if (strcmp(rest, "%") == 0)
    *out /= 100;
  return *rest == '\0' || strcmp(rest, "%") == 0;
}

bool weft_sim_parse_time(const char *text, double plain_us, double *us) {
  static const struct {
    const char *unit;
    double us;
  } units[] = {{"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"min", 60e6}, {"h", 3600e6}, {"d", 86400e6}};
  const char *rest;
  if (!number(text, us, &rest))
    return false;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (strcmp(rest, units[i].unit) == 0) {
      *us *= units[i].us;
      return true;
    }
  const bool good = *rest == '\0' && (*us == 0 || plain_us > 0);
  *us *= plain_us;
  return good;
}

static void time_text(const key_row *row, int64_t us, char out[WEFT_SIM_TEXT]) {
  if (us == WEFT_SIM_NEVER && row->kind == KEY_TIME_OR)
    snprintf(out, WEFT_SIM_TEXT, "%s", row->names[0]);
  else if (us % 1000000 == 0)
    snprintf(out, WEFT_SIM_TEXT, "%lld s", (long long)(us / 1000000));
  else if (us % 1000 == 0)
    snprintf(out, WEFT_SIM_TEXT, "%lld ms", (long long)(us / 1000));
  else
    snprintf(out, WEFT_SIM_TEXT, "%lld us", (long long)us);
}

// --- Values in and out

// Shares and probabilities may be given in percent.
static bool is_share(const key_row *row) { return row->kind == KEY_REAL && row->max <= 1; }

static void *field(weft_sim_parameters *p, const key_row *row) {
  return (uint8_t *)p + row->offset;
}

static bool in_range(const key_row *row, double value, char error[WEFT_SIM_TEXT]) {
  if (value >= row->min && value <= row->max)
    return true;
  const double days = row->max / 86400e6;
  if ((row->kind == KEY_TIME || row->kind == KEY_TIME_OR) && days >= 1)
    snprintf(error, WEFT_SIM_TEXT, "%s must be %.10g s to %.10g s (%.1f d)", row->name,
             row->min / 1e6, row->max / 1e6, days);
  else if (row->kind == KEY_TIME || row->kind == KEY_TIME_OR)
    snprintf(error, WEFT_SIM_TEXT, "%s must be %.10g s to %.10g s", row->name, row->min / 1e6,
             row->max / 1e6);
  else
    snprintf(error, WEFT_SIM_TEXT, "%s must be %.10g to %.10g, not %.10g", row->name, row->min,
             row->max, value);
  return false;
}

static bool set_name(weft_sim_parameters *p, const key_row *row, const char *value,
                     char error[WEFT_SIM_TEXT]) {
  for (int i = 0; row->names[i]; i++)
    if (strcmp(row->names[i], value) == 0) {
      memcpy(field(p, row), &i, sizeof i); // enumerations are ints
      return true;
    }
  size_t at = (size_t)snprintf(error, WEFT_SIM_TEXT, "%s is '%.40s', which is not one of",
                               row->name, value);
  for (size_t i = 0; row->names[i] && at < WEFT_SIM_TEXT; i++)
    at += (size_t)snprintf(error + at, WEFT_SIM_TEXT - at, "%s %s", i ? "," : "", row->names[i]);
  return false;
}

static bool is_symmetric(const weft_sim_parameters *p) {
  for (size_t i = 0; i < p->regions; i++)
    for (size_t j = 0; j < i; j++)
      if (p->matrix_us[i][j] != p->matrix_us[j][i])
        return false;
  return true;
}

// Parses "10 20; 20 10", which must be square.
static bool set_matrix(weft_sim_parameters *p, const char *value, char error[WEFT_SIM_TEXT]) {
  size_t row = 0, column = 0, width = 0;
  bool square = true;
  for (const char *at = value; *at;) {
    const char *rest;
    double ms;
    if (row == WEFT_SIM_MAX_REGIONS || column == WEFT_SIM_MAX_REGIONS || !number(at, &ms, &rest) ||
        !(ms >= 0.1 && ms <= 60000)) {
      snprintf(error, WEFT_SIM_TEXT, "matrix may have up to %u rows of delays of 0.1 to 60000 ms",
               WEFT_SIM_MAX_REGIONS);
      return false;
    }
    p->matrix_us[row][column++] = (int64_t)llround(ms * 1000);
    at = rest;
    if (*at == ';' || *at == '\0') {
      width = row ? width : column;
      square = square && column == width;
      column = 0;
      row++;
      at += *at == ';';
      while (*at == ' ')
        at++;
    }
  }
  p->regions = (uint32_t)row;
  if (row > 0 && row == width && square && is_symmetric(p))
    return true;
  snprintf(error, WEFT_SIM_TEXT,
           "matrix must be square and symmetric: the same delay in both directions");
  return false;
}

static bool set_whole(weft_sim_parameters *p, const key_row *row, const char *value,
                      char error[WEFT_SIM_TEXT]) {
  double n;
  if (!weft_sim_parse_quantity(value, &n) || n != floor(n)) {
    snprintf(error, WEFT_SIM_TEXT, "%s needs a whole number such as 4 or 20M, not '%.40s'",
             row->name, value);
    return false;
  }
  if (!in_range(row, n, error))
    return false;
  if (row->kind == KEY_U32)
    *(uint32_t *)field(p, row) = (uint32_t)n;
  else
    *(uint64_t *)field(p, row) = (uint64_t)n;
  return true;
}

static bool set_real(weft_sim_parameters *p, const key_row *row, const char *value,
                     char error[WEFT_SIM_TEXT]) {
  double n;
  if (row->kind == KEY_STAY && weft_sim_parse_time(value, 0, &n)) {
    n /= 1e6;
  } else if (row->kind == KEY_STAY || !(is_share(row) ? weft_sim_parse_share(value, &n)
                                                      : weft_sim_parse_quantity(value, &n))) {
    snprintf(error, WEFT_SIM_TEXT, "%s needs %s, not '%.40s'", row->name,
             row->kind == KEY_STAY ? "a time such as 5 min"
             : is_share(row)       ? "a share such as 0.05 or 5 %"
                                   : "a number such as 0.5",
             value);
    return false;
  }
  if (!in_range(row, n, error))
    return false;
  *(double *)field(p, row) = n;
  return true;
}

static bool set_time(weft_sim_parameters *p, const key_row *row, const char *value,
                     char error[WEFT_SIM_TEXT]) {
  double n;
  if (row->kind == KEY_TIME_OR && strcmp(value, row->names[0]) == 0) {
    *(int64_t *)field(p, row) = WEFT_SIM_NEVER;
    return true;
  }
  if (!weft_sim_parse_time(value, 0, &n)) {
    snprintf(error, WEFT_SIM_TEXT,
             "%s needs %s%sa time such as 20 ms, 5 s, 10 min, 2 h or 3 d, not '%.40s'", row->name,
             row->kind == KEY_TIME_OR ? row->names[0] : "", row->kind == KEY_TIME_OR ? " or " : "",
             value);
    return false;
  }
  if (!in_range(row, n, error))
    return false;
  *(int64_t *)field(p, row) = (int64_t)llround(n);
  return true;
}

static bool set_bool(weft_sim_parameters *p, const key_row *row, const char *value,
                     char error[WEFT_SIM_TEXT]) {
  if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0) {
    snprintf(error, WEFT_SIM_TEXT, "%s needs true or false, not '%.40s'", row->name, value);
    return false;
  }
  *(bool *)field(p, row) = *value == 't';
  return true;
}

static bool set_text(weft_sim_parameters *p, const key_row *row, const char *value, size_t room,
                     char error[WEFT_SIM_TEXT]) {
  if (strlen(value) >= room) {
    snprintf(error, WEFT_SIM_TEXT, "%s is too long", row->name);
    return false;
  }
  snprintf(field(p, row), room, "%s", value);
  return true;
}

// A value with a slash is a file. So a misspelled name is not taken for one, and the loader does
// not search its own folders.
static bool set_scheme(weft_sim_parameters *p, const key_row *row, const char *value,
                       char error[WEFT_SIM_TEXT]) {
  if (!strchr(value, '/')) {
    const bool known = set_name(p, row, value, error);
    const size_t at = known ? 0 : strlen(error);
    snprintf(error + at, WEFT_SIM_TEXT - at, "%s", known ? "" : ", or a file such as ./policy.so");
    return known;
  }
  if (strlen(value) >= sizeof p->policy_file) {
    snprintf(error, WEFT_SIM_TEXT, "%s is too long", row->name);
    return false;
  }
  snprintf(p->policy_file, sizeof p->policy_file, "%s", value);
  p->scheme = WEFT_SIM_OWN;
  return true;
}

bool weft_sim_set_row(weft_sim_parameters *p, const key_row *row, const char *value,
                      char error[WEFT_SIM_TEXT]) {
  switch (row->kind) {
  case KEY_U32:
  case KEY_U64:
    return set_whole(p, row, value, error);
  case KEY_REAL:
  case KEY_STAY:
    return set_real(p, row, value, error);
  case KEY_TIME:
  case KEY_TIME_OR:
    return set_time(p, row, value, error);
  case KEY_BOOL:
    return set_bool(p, row, value, error);
  case KEY_FIDELITY:
    p->fidelity_auto = strcmp(value, "auto") == 0;
    if (p->fidelity_auto || set_name(p, row, value, error))
      return true;
    snprintf(error + strlen(error), WEFT_SIM_TEXT - strlen(error), ", auto");
    return false;
  case KEY_NAME:
    return set_name(p, row, value, error);
  case KEY_SCHEME:
    return set_scheme(p, row, value, error);
  case KEY_TEXT:
    return set_text(p, row, value, sizeof p->trace_file, error);
  case KEY_NAMED:
    return set_text(p, row, value, sizeof p->code, error);
  case KEY_CLASSES:
    return weft_sim_set_classes(p, value, error);
  case KEY_MATRIX:
    return set_matrix(p, value, error);
  }
  return false;
}

bool weft_sim_set(weft_sim_parameters *parameters, const char *name, const char *value,
                  char error[WEFT_SIM_TEXT]) {
  const key_row *row = weft_sim_find_key(NULL, name);
  if (row)
    return weft_sim_set_row(parameters, row, value, error);
  snprintf(error, WEFT_SIM_TEXT, "there is no key '%.60s'", name);
  return false;
}

// Returns the shortest text of at least six digits that gives the same value again after
// multiplication and division by `parts`.
static const char *real_text(double value, double parts, char out[32]) {
  for (int digits = 6; digits <= DBL_DECIMAL_DIG; digits++) {
    snprintf(out, 32, "%.*g", digits, value);
    if (strtod(out, NULL) * parts / parts == value)
      break;
  }
  return out;
}

static void matrix_text(const weft_sim_parameters *p, char out[WEFT_SIM_TEXT]) {
  char ms[32];
  size_t at = 0;
  out[0] = '\0';
  for (size_t i = 0; i < p->regions; i++)
    for (size_t j = 0; j < p->regions && at < WEFT_SIM_TEXT; j++)
      at += (size_t)snprintf(out + at, WEFT_SIM_TEXT - at, "%s%s",
                             j   ? " "
                             : i ? "; "
                                 : "",
                             real_text((double)p->matrix_us[i][j] / 1000, 1, ms));
}

static void classes_text(const weft_sim_parameters *p, char out[WEFT_SIM_TEXT]) {
  char share[32];
  size_t at = 0;
  out[0] = '\0';
  for (size_t i = 0; i < p->class_count && at < WEFT_SIM_TEXT; i++)
    at += (size_t)snprintf(out + at, WEFT_SIM_TEXT - at, "%s%s:%s", i ? " " : "",
                           p->classes[i].name, real_text(p->classes[i].share, 1, share));
}

void weft_sim_key_text(const weft_sim_parameters *parameters, size_t index,
                       char out[WEFT_SIM_TEXT]) {
  const key_row *row = weft_sim_row_at(index);
  const void *at = (const uint8_t *)parameters + row->offset;
  char real[32];
  int chosen = 0;
  switch (row->kind) {
  case KEY_U32:
    snprintf(out, WEFT_SIM_TEXT, "%lu", (unsigned long)*(const uint32_t *)at);
    return;
  case KEY_U64:
    snprintf(out, WEFT_SIM_TEXT, "%llu", (unsigned long long)*(const uint64_t *)at);
    return;
  case KEY_REAL:
    snprintf(out, WEFT_SIM_TEXT, "%s", real_text(*(const double *)at, 1, real));
    return;
  case KEY_STAY:
    snprintf(out, WEFT_SIM_TEXT, "%s s", real_text(*(const double *)at, S, real));
    return;
  case KEY_TIME:
  case KEY_TIME_OR:
    time_text(row, *(const int64_t *)at, out);
    return;
  case KEY_BOOL:
    snprintf(out, WEFT_SIM_TEXT, "%s", *(const bool *)at ? "true" : "false");
    return;
  case KEY_FIDELITY:
  case KEY_SCHEME:
  case KEY_NAME:
    memcpy(&chosen, at, sizeof chosen);
    if (row->kind == KEY_FIDELITY && parameters->fidelity_auto)
      snprintf(out, WEFT_SIM_TEXT, "auto");
    else if (row->kind == KEY_SCHEME && chosen == WEFT_SIM_OWN)
      snprintf(out, WEFT_SIM_TEXT, "%s", parameters->policy_file);
    else
      snprintf(out, WEFT_SIM_TEXT, "%s", row->names[chosen]);
    return;
  case KEY_TEXT:
  case KEY_NAMED:
    snprintf(out, WEFT_SIM_TEXT, "%s", (const char *)at);
    return;
  case KEY_CLASSES:
    classes_text(parameters, out);
    return;
  case KEY_MATRIX:
    matrix_text(parameters, out);
    return;
  }
}

double weft_sim_key_number(const weft_sim_parameters *parameters, size_t index) {
  const key_row *row = weft_sim_row_at(index);
  const void *at = (const uint8_t *)parameters + row->offset;
  switch (row->kind) {
  case KEY_U32:
    return *(const uint32_t *)at;
  case KEY_U64:
    return (double)*(const uint64_t *)at;
  case KEY_REAL:
  case KEY_STAY:
    return *(const double *)at;
  case KEY_TIME:
  case KEY_TIME_OR:
    return *(const int64_t *)at == WEFT_SIM_NEVER ? (double)NAN : (double)*(const int64_t *)at / S;
  default:
    return (double)NAN;
  }
}

// SPDX-License-Identifier: Apache-2.0
// When segments are played. Live: all peers play a segment `lag` after it became available at the
// source, as nearly as they know: by the smallest delay that they have seen. VoD: each at its own
// time, stalling for what is late.
#include "peer/engine/internal.h"

enum {
  TURN_US = 60000000,      // how long a smallest delay counts
  SECOND_TIME_US = 300000, // how long a second manifest is waited for
  ABSENT_US = 250000,      // a look that is later than this follows an absence
  LATE_US = 2000000,       // for so long, and so often, nothing was nearly as fast as the fastest:
  LATE_TIMES = 8           // the source's clock stood still
};
static const int64_t FAR = INT64_MAX / 4;
// No segment counts as longer (8.9 years), so that the time of three windows does not overflow,
// whatever a source signs.
static const int64_t SEGMENT_MOST_US = INT64_C(1) << 48;
_Static_assert(3 * WEFT_ENGINE_MAX_WINDOW < 1 << 15, "three windows of the longest segments fit");

// --- Clocks: the smallest offset of this minute and of the last, so that drift is followed

int64_t weft_clock_offset(const int64_t pair[2]) { return pair[0] < pair[1] ? pair[0] : pair[1]; }

void weft_clock_learn(int64_t pair[2], int64_t *turn_us, int64_t sample, int64_t now_us) {
  if (pair[0] == INT64_MAX || now_us - *turn_us >= TURN_US) {
    pair[1] = pair[0];
    pair[0] = sample;
    *turn_us = now_us;
  }
  pair[0] = sample < pair[0] ? sample : pair[0];
}

// Notices that the source's clock stood still (a virtual machine that was suspended): all of its
// times are as much later then. If peers waited for the smallest offset to age, all that the source
// makes would be past its time for a minute or two. Delays of half the lag that last for seconds
// have the same effect: no peer plays in time with them.
static void notice_step(weft_engine *e, int64_t sample, int64_t now_us) {
  const int64_t offset_us = weft_clock_offset(e->offset_us);
  if (offset_us == INT64_MAX || sample - offset_us <= weft_lag_us(e) / 2) {
    e->late_count = 0;
    return;
  }
  if (e->late_count == 0) {
    e->late_us = now_us;
    e->late_least_us = sample;
  }
  e->late_count = (uint8_t)(e->late_count + (e->late_count < LATE_TIMES));
  e->late_least_us = sample < e->late_least_us ? sample : e->late_least_us;
  if (e->late_count < LATE_TIMES || now_us - e->late_us < LATE_US)
    return;
  const int64_t step_us = e->late_least_us - offset_us;
  for (int i = 0; i < 2; i++) {
    e->offset_us[i] = e->late_least_us;
    e->clock_us[i] += e->clock_us[i] == INT64_MAX ? 0 : step_us;
  }
  e->offset_turn_us = now_us;
  e->late_count = 0;
}

// --- Media time

int64_t weft_segment_us(const weft_engine *e) {
  const uint64_t rate = e->options->rate_bits_per_s, bits = 8 * weft_segment_bytes(e);
  const int64_t each_us = rate ? (int64_t)(bits * 1000000 / rate) : e->segment_us;
  return each_us < 0 ? 0 : each_us < SEGMENT_MOST_US ? each_us : SEGMENT_MOST_US;
}

bool weft_timed_by_rate(const weft_engine *e) {
  return e->options->rate_bits_per_s && !(weft_is_live(e) && e->options->trust);
}

int64_t weft_segment_by_rate(const weft_engine *e, uint64_t segment) {
  const uint64_t rate = e->options->rate_bits_per_s, bits = 8 * weft_segment_bytes(e);
  if (segment > ((uint64_t)1 << 62) / bits || segment * bits / rate > (uint64_t)FAR / 1000000)
    return FAR;
  const uint64_t all = segment * bits;
  return (int64_t)(all / rate * 1000000 + all % rate * 1000000 / rate);
}

int64_t weft_segment_at(const weft_engine *e, uint64_t segment) {
  if (weft_timed_by_rate(e))
    return weft_segment_by_rate(e, segment);
  if (weft_window_has(e, segment) && weft_window_slot(e, segment)->manifest)
    return weft_window_slot(e, segment)->at_us;
  // Times never fall: a segment without a known time is played no later than the next that has one.
  // Nor is it played sooner, or what a source makes after a pause would be skipped before it comes.
  for (uint64_t s = segment + 1; s <= e->timed_segment && weft_window_has(e, s); s++)
    if (weft_window_slot(e, s)->manifest)
      return weft_window_slot(e, s)->at_us;
  const int64_t steps = (int64_t)segment - (int64_t)e->timed_segment, each = weft_segment_us(e);
  if (each && (steps > FAR / each || steps < -(FAR / each)))
    return FAR;
  return e->timed_us + steps * each;
}

// --- The lag
//
// The source drops a segment when it has made a window of others after it. A viewer that still
// waits for its time then would find none of the following any more, for ever. So the lag is what
// windows hold, at most: without the segment that is being played and the one that the source
// makes.
static uint64_t lag_segments(const weft_engine *e) { return e->window > 3 ? e->window - 2 : 1; }

int64_t weft_lag_allowed(const weft_engine *e) {
  const int64_t lag_us = weft_or(e->options->lag_us, 3000000);
  if (!e->options->rate_bits_per_s)
    return lag_us;
  const int64_t held_us = weft_segment_by_rate(e, lag_segments(e));
  return held_us < lag_us ? held_us : lag_us;
}

bool weft_play_pressed(const weft_engine *e, uint64_t horizon) {
  return weft_is_live(e) && !weft_timed_by_rate(e) && e->started && horizon > lag_segments(e) &&
         horizon - 1 - lag_segments(e) >= e->play;
}

// Whether the next segment is due whatever its time, by what is signed.
static bool due_by_window(const weft_engine *e) {
  return weft_play_pressed(e, e->timed_segment + 1);
}

int64_t weft_play_lag_us(const weft_engine *e) {
  if (!weft_play_pressed(e, e->timed_segment + 2))
    return weft_lag_us(e);
  const int64_t held_us = e->timed_us - weft_segment_at(e, e->play) + weft_segment_us(e);
  return held_us < weft_lag_us(e) ? held_us : weft_lag_us(e);
}

// --- When to play

// Live, with a short lag: playback begins with what is here, not with what is still to be made.
static int64_t startup(const weft_engine *e) {
  const int64_t startup_us = weft_or(e->options->startup_us, 1000000);
  const int64_t most_us = weft_lag_us(e) - weft_lag_us(e) / 4;
  return weft_is_live(e) && startup_us > most_us ? most_us : startup_us;
}

static bool live_known(const weft_engine *e) {
  return weft_clock_offset(e->offset_us) != INT64_MAX;
}

static int64_t live_time(const weft_engine *e, uint64_t segment) {
  return weft_segment_at(e, segment) + weft_clock_offset(e->offset_us) + weft_lag_us(e);
}

// live_time() of the next segment to be played, by the cached media time if that is known.
static int64_t live_next(const weft_engine *e) {
  if (!weft_timed_by_rate(e) || e->due_segment != e->play)
    return live_time(e, e->play);
  return e->due_us + weft_clock_offset(e->offset_us) + weft_lag_us(e);
}

// --- Where to begin

// The first segment that is due `startup` from now, by steps from the newest whose time is known.
static uint64_t first_in_time(const weft_engine *e, int64_t now_us) {
  const int64_t each = weft_segment_us(e), wanted = now_us + startup(e);
  uint64_t segment = weft_timed_by_rate(e) ? (e->horizon ? e->horizon - 1 : 0) : e->timed_segment;
  if (each > 0) { // as many steps from the newest as make it due when it can be had
    int64_t steps = (wanted - live_time(e, segment)) / each;
    if (steps < -(int64_t)segment)
      steps = -(int64_t)segment;
    segment += (uint64_t)steps;
  }
  // The steps leave a rounding error, or times in the window that are not of one rate. Times beyond
  // all reason are cut off at FAR, and more steps would not change them.
  for (size_t i = 0; i <= e->window && each > 0 && live_time(e, segment) < wanted; i++)
    segment++;
  return segment;
}

// Where the source's clock gives the times, input may come in bursts, or pause: then steps from the
// newest segment lead anywhere. The next one to come has all of the lag to get here. Where no rate
// tells the length of a step, half of the window is left for what comes until the first is due.
static uint64_t within_reason(const weft_engine *e, uint64_t segment) {
  if (weft_timed_by_rate(e))
    return segment;
  const uint64_t timed = e->timed_segment + 1, next = timed > e->horizon ? timed : e->horizon;
  const uint64_t back = e->options->rate_bits_per_s ? next : e->window / 2;
  const uint64_t oldest = next > back ? next - back : 0;
  return segment > next ? next : segment < oldest ? oldest : segment;
}

void weft_play_start(weft_engine *e, int64_t now_us) {
  if (e->started || !weft_is_live(e) || !live_known(e))
    return;
  // One time does not tell how far back to begin. A second one comes at once, if there is one.
  if (weft_segment_us(e) == 0 && e->timed_segment > 0 && now_us < e->begin_us) {
    e->begin_us = e->begin_us == WEFT_ENGINE_NEVER ? now_us + SECOND_TIME_US : e->begin_us;
    return;
  }
  const uint64_t segment = within_reason(e, first_in_time(e, now_us));
  e->started = true;
  e->begin_us = WEFT_ENGINE_NEVER;
  weft_window_jump(e, segment > e->play ? segment : e->play); // what was played is not played again
  for (size_t i = 0; i < e->used; i++)
    if (e->neighbours[i].state == WEFT_NEIGHBOUR_OPEN)
      weft_neighbour_due(e, i, WEFT_DUE_MAP);
}

void weft_play_learn(weft_engine *e, uint64_t segment, int64_t now_us) {
  // What is not signed tells the time only in streams where nothing is signed.
  if (!weft_is_live(e) || e->self.source || e->options->trust)
    return;
  weft_clock_learn(e->offset_us, &e->offset_turn_us, now_us - weft_segment_at(e, segment), now_us);
  weft_play_start(e, now_us);
}

// How long a segment lasts, by the newest and the oldest whose time is here: input comes in bursts,
// so the newest two alone may be a thousand times as near to each other.
static int64_t pace(const weft_engine *e, uint64_t segment, int64_t at_us) {
  for (uint64_t s = e->tail; s < segment && weft_window_has(e, s); s++)
    if (weft_window_slot(e, s)->manifest)
      return (at_us - weft_window_slot(e, s)->at_us) / (int64_t)(segment - s);
  return (at_us - e->timed_us) / (int64_t)(segment - e->timed_segment);
}

void weft_play_manifest(weft_engine *e, uint64_t segment, int64_t at_us, int64_t now_us) {
  if (!weft_is_paced(e) || e->self.source)
    return;
  const bool first = e->timed_segment == 0 && e->timed_us == 0 && e->segment_us == 0;
  if (weft_is_live(e) && segment > e->timed_segment) // older ones may have been requested late
    notice_step(e, now_us - at_us, now_us);
  if (!first && segment > e->timed_segment)
    e->segment_us = pace(e, segment, at_us);
  else if (!first && e->segment_us == 0 && segment < e->timed_segment)
    e->segment_us = (e->timed_us - at_us) / (int64_t)(e->timed_segment - segment);
  if (first || segment >= e->timed_segment) {
    e->timed_segment = segment;
    e->timed_us = at_us;
  }
  if (!weft_is_live(e))
    return;
  weft_clock_learn(e->offset_us, &e->offset_turn_us, now_us - at_us, now_us);
  weft_play_start(e, now_us);
}

// --- Playing

static bool over(const weft_engine *e) { return e->end_known && e->play >= weft_window_total(e); }

static void play_one(weft_engine *e, int64_t now_us) {
  if (e->statistics.startup_us < 0)
    e->statistics.startup_us = now_us - (e->joined_us < 0 ? now_us : e->joined_us);
  weft_tell(e, &weft_window_slot(e, e->play)->tell_play);
  e->play++;
}

static void skip_one(weft_engine *e) {
  weft_slot *slot = weft_window_slot(e, e->play);
  slot->skipped = true;
  weft_window_held(e, e->play)->rank = 0; // others may think it complete: it is not sent
  e->statistics.skipped++;
  e->skipped = true;
  weft_tell(e, &slot->tell_skip);
  if (e->released == e->play)
    e->released++;
  e->play++;
  weft_window_in_order(e);
  weft_engine_changed(e);
}

static bool live_due(const weft_engine *e) {
  return e->started && live_known(e) && !over(e) && e->play < e->horizon &&
         weft_window_has(e, e->play);
}

// Whether this peer can go on only by a manifest that nobody sends unasked: it has none yet, or its
// output was not read, and neighbours hold nothing any more that its full window took.
bool weft_play_lacks_time(const weft_engine *e) {
  if (!weft_is_live(e) || !e->options->trust || e->self.source)
    return false;
  return !e->started || (!over(e) && e->play >= e->horizon && weft_window_has(e, e->play));
}

// Whether this peer slept for longer than the window, whose segments no peer has any more. After a
// burst a window may last for milliseconds, by its times: what is complete here is played, however
// late.
static bool live_slept(const weft_engine *e, int64_t now_us) {
  return weft_segment_us(e) > 0 && live_time(e, e->play + e->window) <= now_us &&
         weft_engine_buffered(e) == 0;
}

// Begins again near the edge of the stream. What was played and not read yet is dropped, too.
static void begin_again(weft_engine *e, int64_t now_us) {
  const uint64_t play = e->play;
  for (uint64_t s = e->released; s < play && weft_window_has(e, s); s++)
    e->statistics.passed_over += !weft_window_slot(e, s)->skipped;
  e->started = false;
  weft_play_start(e, now_us);
  e->statistics.passed_over += e->play > play ? e->play - play : 0;
}

// Notices an absence. A peer that slept, or was stopped, finds all that came meanwhile at once, as
// if it had queued on its way, and has itself to blame for what is late: that says nothing about
// links and uplinks. Nor does what is due in the moment after, in which the backlog is read.
static void notice_absence(weft_engine *e, int64_t now_us) {
  const int64_t next_us = live_next(e);
  const bool awaited = e->awaited_us != WEFT_ENGINE_NEVER && e->awaited_us > next_us;
  if (now_us - (awaited ? e->awaited_us : next_us) <= ABSENT_US)
    return;
  e->back_us = now_us + ABSENT_US;
  weft_shortage_start(e, now_us);
}

static void play_due(weft_engine *e, int64_t now_us) {
  while (live_due(e) && (live_time(e, e->play) <= now_us || due_by_window(e))) {
    const bool complete = weft_window_slot(e, e->play)->complete;
    e->statistics.due++;
    e->statistics.in_time += complete;
    if (live_time(e, e->play) >= e->back_us)
      weft_shortage_learn(e, e->play, complete, now_us);
    if (complete)
      play_one(e, now_us);
    else
      skip_one(e);
  }
}

static void live_look(weft_engine *e, int64_t now_us) {
  if (!e->started && now_us >= e->begin_us)
    weft_play_start(e, now_us);
  const uint64_t before = e->play;
  if (!live_due(e))
    return;
  if (weft_timed_by_rate(e) && e->due_segment != before) { // otherwise manifests may change it
    e->due_us = weft_segment_at(e, before);
    e->due_segment = before;
  }
  if (live_next(e) > now_us && !due_by_window(e))
    return;
  if (live_slept(e, now_us)) {
    begin_again(e, now_us);
    return;
  }
  notice_absence(e, now_us);
  play_due(e, now_us);
  if (e->play != before)
    weft_window_advance(e);
}

static void live_tick(weft_engine *e, int64_t now_us) {
  live_look(e, now_us);
  e->awaited_us = weft_play_deadline(e);
}

bool weft_play_begins_with(const weft_engine *e, uint64_t segment) {
  return segment == e->play ||
         (weft_segment_us(e) > 0 &&
          weft_segment_at(e, segment) - weft_segment_at(e, e->play) < startup(e));
}

static bool vod_ready(const weft_engine *e) { // enough to begin
  if (over(e) || !weft_window_has(e, e->play) || e->missing <= e->play)
    return false;
  return (e->end_known && e->missing >= weft_window_total(e)) ||
         e->missing >= e->tail + e->window ||
         weft_segment_at(e, e->missing) - weft_segment_at(e, e->play) >= startup(e);
}

static bool vod_here(const weft_engine *e) {
  return weft_window_has(e, e->play) && weft_window_slot(e, e->play)->complete;
}

static void vod_tick(weft_engine *e, int64_t now_us) {
  if (!e->playing && vod_ready(e)) {
    e->playing = true;
    e->origin_us = now_us - weft_segment_at(e, e->play);
  }
  if (e->stalled && vod_here(e)) {
    e->stalled = false;
    e->statistics.stalled_us += now_us - e->stall_us;
    e->origin_us = now_us - weft_segment_at(e, e->play);
    weft_tell(e, &e->tell_resume);
    play_one(e, now_us);
  }
  while (e->playing && !e->stalled && !over(e) &&
         weft_segment_at(e, e->play) + e->origin_us <= now_us) {
    e->statistics.due++;
    if (!vod_here(e)) {
      e->stalled = true;
      e->stall_us = now_us;
      e->statistics.stalls++;
      weft_tell(e, &e->tell_stall);
      return;
    }
    e->statistics.in_time++;
    play_one(e, now_us);
  }
}

void weft_play_tick(weft_engine *e, int64_t now_us) {
  if (e->self.source)
    return;
  if (e->options->mode == WEFT_MODE_LIVE)
    live_tick(e, now_us);
  else if (e->options->mode == WEFT_MODE_VOD)
    vod_tick(e, now_us);
}

int64_t weft_play_deadline(const weft_engine *e) {
  if (e->self.source || !weft_is_paced(e))
    return WEFT_ENGINE_NEVER;
  if (weft_is_live(e))
    return !e->started        ? e->begin_us
           : !live_due(e)     ? WEFT_ENGINE_NEVER
           : due_by_window(e) ? 0
                              : live_next(e);
  if (!e->playing)
    return vod_ready(e) ? 0 : WEFT_ENGINE_NEVER;
  if (e->stalled)
    return vod_here(e) ? 0 : WEFT_ENGINE_NEVER;
  return over(e) ? WEFT_ENGINE_NEVER : weft_segment_at(e, e->play) + e->origin_us;
}

weft_status weft_engine_play_time(const weft_engine *e, uint64_t segment, int64_t *at_us) {
  if (e->self.source || !weft_is_paced(e))
    return WEFT_E_STATE;
  if (weft_is_live(e) ? !live_known(e) : !e->playing || e->stalled)
    return WEFT_PENDING;
  *at_us = weft_is_live(e) ? live_time(e, segment) : weft_segment_at(e, segment) + e->origin_us;
  return WEFT_OK;
}

size_t weft_engine_buffered(const weft_engine *e) {
  size_t count = 0;
  for (uint64_t s = e->play; weft_is_paced(e) && weft_window_has(e, s); s++)
    count += weft_window_slot(e, s)->complete;
  return count;
}

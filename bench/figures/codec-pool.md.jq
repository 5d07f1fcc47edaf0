# results: results/intel-r-xeon-r-processor-family-6-model-207-stepping-2/pool.json
# SPDX-License-Identifier: Apache-2.0
# Jobs of 56 tasks on a host of 16 CPUs.
include "weft";
def job($task; $threads; $pause): [cases | select(.operation == "tasks" and .task_us == $task and .threads == $threads and .pause_us == $pause)][0];
input
| heading("threads", "pause before", "56 x 4 us", "nine in ten", "least", "56 x 15 us", "nine in ten", "least"),
  ((4, 8, 14) as $threads | ([0, "none"], [100, "100 us"], [300, "300 us"], [3000, "3 ms"]) as [$pause, $name]
   | row($threads, $name, ((4, 15) as $task | job($task; $threads; $pause)
       | (.seconds_per_call | times_us | with_spread), (.nine_in_ten_seconds, .share_seconds | times_us[0] | three))))

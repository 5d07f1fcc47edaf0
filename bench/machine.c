// SPDX-License-Identifier: Apache-2.0
// Reads the machine's description from /proc, /sys and sysconf; what is missing remains empty.
#define _GNU_SOURCE // sched_setaffinity
#include "bench/machine.h"

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kernels/cpu.h"

// Returns the value of "key : value" in a line of /proc/cpuinfo, or NULL.
static const char *cpuinfo_value(const char *line, const char *key) {
  const size_t length = strlen(key);
  if (strncmp(line, key, length) != 0)
    return NULL;
  const char *at = line + length;
  while (*at == ' ' || *at == '\t')
    at++;
  if (*at++ != ':')
    return NULL;
  while (*at == ' ')
    at++;
  return at;
}

static void read_cpuinfo(weft_bench_machine *machine) {
  static const char *const keys[] = {"model name", "cpu family", "model", "stepping"};
  char found[4][96] = {"", "", "", ""};
  char line[4096];
  FILE *const file = fopen("/proc/cpuinfo", "r");
  if (!file)
    return;
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = '\0';
    for (size_t i = 0; i < 4; i++) {
      const char *const value = cpuinfo_value(line, keys[i]);
      if (value && !found[i][0])
        snprintf(found[i], sizeof found[i], "%.90s", value);
    }
    if (cpuinfo_value(line, "flags") && strstr(line, " hypervisor"))
      machine->hypervisor = true;
  }
  fclose(file);
  if (found[1][0])
    snprintf(machine->cpu, sizeof machine->cpu, "%.64s (family %.8s, model %.8s, stepping %.8s)",
             found[0], found[1], found[2], found[3]);
  else
    snprintf(machine->cpu, sizeof machine->cpu, "%.90s", found[0]);
}

static void make_folder(weft_bench_machine *machine) {
  size_t at = 0;
  for (const char *c = machine->cpu; *c && at + 1 < sizeof machine->folder; c++) {
    if (isalnum((unsigned char)*c))
      machine->folder[at++] = (char)tolower((unsigned char)*c);
    else if (at > 0 && machine->folder[at - 1] != '-')
      machine->folder[at++] = '-';
  }
  while (at > 0 && machine->folder[at - 1] == '-')
    at--;
  machine->folder[at] = '\0';
}

// Returns the lowest CPU number of the core that `cpu` belongs to; `cpu` itself if unknown.
static int core_of(int cpu) {
  char path[128];
  int first = cpu;
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
  FILE *const file = fopen(path, "r");
  if (!file)
    return cpu;
  if (fscanf(file, "%d", &first) != 1)
    first = cpu;
  fclose(file);
  return first;
}

static void read_cpus(weft_bench_machine *machine) {
  const size_t room = sizeof machine->order / sizeof machine->order[0];
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    CPU_SET(0, &allowed);
  int siblings[1024];
  bool seen[CPU_SETSIZE] = {false};
  size_t sibling_count = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE && machine->cpus + sibling_count < room; cpu++) {
    if (!CPU_ISSET((size_t)cpu, &allowed))
      continue;
    const int core = core_of(cpu);
    if (core >= 0 && core < CPU_SETSIZE && !seen[core]) {
      seen[core] = true;
      machine->order[machine->cpus++] = cpu;
    } else {
      siblings[sibling_count++] = cpu;
    }
  }
  machine->cores = machine->cpus;
  // Interrupts tend to be handled by the first CPU, so start with the last core.
  for (size_t i = 0; i < machine->cores / 2; i++) {
    const int swap = machine->order[i];
    machine->order[i] = machine->order[machine->cores - 1 - i];
    machine->order[machine->cores - 1 - i] = swap;
  }
  for (size_t i = 0; i < sibling_count; i++)
    machine->order[machine->cpus++] = siblings[i];
}

static size_t cache_bytes(int name) {
  const long bytes = sysconf(name);
  return bytes > 0 ? (size_t)bytes : 0;
}

void weft_bench_machine_read(weft_bench_machine *machine) {
  *machine = (weft_bench_machine){.features = weft_cpu_features()};
  snprintf(machine->cpu, sizeof machine->cpu, "unknown CPU");
  read_cpuinfo(machine);
  make_folder(machine);
  read_cpus(machine);
  struct utsname system;
  if (uname(&system) == 0)
    snprintf(machine->kernel, sizeof machine->kernel, "%.32s %.64s %.32s", system.sysname,
             system.release, system.machine);
#ifdef _SC_LEVEL1_DCACHE_SIZE
  machine->l1d = cache_bytes(_SC_LEVEL1_DCACHE_SIZE);
  machine->l2 = cache_bytes(_SC_LEVEL2_CACHE_SIZE);
  machine->l3 = cache_bytes(_SC_LEVEL3_CACHE_SIZE);
#endif
}

size_t weft_bench_thread_counts(const weft_bench_machine *machine,
                                size_t threads[WEFT_BENCH_THREAD_COUNTS]) {
  size_t count = 0;
  for (size_t t = 1; t <= machine->cores && count < WEFT_BENCH_THREAD_COUNTS; t *= 2)
    threads[count++] = t;
  return count;
}

bool weft_bench_pin(const weft_bench_machine *machine, size_t index) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (index >= machine->cpus)
    return false;
  CPU_SET((size_t)machine->order[index], &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

void weft_bench_unpin(const weft_bench_machine *machine) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (size_t i = 0; i < machine->cpus; i++)
    CPU_SET((size_t)machine->order[i], &set);
  // If this is refused, pinning was refused as well.
  (void)sched_setaffinity(0, sizeof set, &set);
}

bool weft_bench_pin_workers(const weft_bench_machine *machine, size_t threads) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (machine->cpus == 0)
    return false;
  for (size_t i = 1; i < threads && i < machine->cpus; i++)
    CPU_SET((size_t)machine->order[i], &set);
  if (threads < 2 || machine->cpus < 2)
    CPU_SET((size_t)machine->order[0], &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

/// Runs an MPI program on the simulated machine and writes what it counted. `pidcomm parcels`
/// starts it.
///
/// machine FIELD=VALUE ... PROGRAM ARGUMENTS: PROGRAM is a shared object with the function
/// parcels_main, counted by count.py. Each node loads a copy of it, so each process has its own
/// variables.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "machine/machine.h"

enum { WRONG = 3, DEADLOCK = 4, REFUSED = 5, MAIN_STACK_BYTES = 1 << 20, PAGES = 1 << 22 };

static FILE *report;
static int argument_count;
static char **arguments;
static int first_code;  ///< the first code of a process that is not 0

extern const char *const machine_categories[PIM_categories];
size_t mpi_process_bytes(void);

void machine_fail(const char *format, ...) {
  va_list values;
  va_start(values, format);
  fflush(stdout);
  vfprintf(stderr, format, values);
  fputc('\n', stderr);
  if (machine.trace) fclose(machine.trace);
  exit(WRONG);
}

void pim_abort(int code, const char *sentence) {
  machine_fail("rank %d, cycle %lu: MPI error %d: %s", machine_now->node->number, machine_now->time,
               code, sentence);
}

double MPI_Wtime(void) { return 1e-9 * (double)machine_now->time; }

/// Pages in order of first use, by node: a hash table with open addressing. It never grows, because
/// machine_step must not allocate.
static struct page {
  uint64_t key, number;
} *pages;
static unsigned used_pages;

uint64_t machine_physical(node *at, uint64_t address) {
  const uint64_t key = (address >> 12) << 16 | (unsigned)(at->number + 1);
  uint64_t place = key * 0x9e3779b97f4a7c15u >> 42;
  while (pages[place].key && pages[place].key != key) place = (place + 1) % PAGES;
  if (!pages[place].key) {
    if (++used_pages == PAGES)
      machine_fail("the processes use more than %d pages of 4 KiB", PAGES - 1);
    pages[place] = (struct page){key, at->pages++};
  }
  return pages[place].number << 12 | (address & 4095);
}

static void run_program(void *state, void *payload) {
  (void)payload;
  int (*program)(int, char **) = *(int (**)(int, char **))state;
  const int code = program(argument_count, arguments);
  if (!first_code) first_code = code;
}

/// exit() of the programs: ends the process that calls it.
_Noreturn void parcels_exit(int code) {
  if (!first_code) first_code = code;
  machine_end_thread();
}

/// Loads a copy of the program: the loader shares variables between loads of one file.
static void *load(const char *path, int source, size_t bytes) {
  char name[64];
  const int copy = memfd_create("program", MFD_CLOEXEC);
  off_t start = 0;
  if (copy < 0 || sendfile(copy, source, &start, bytes) != (ssize_t)bytes)
    machine_fail("%s cannot be copied", path);
  snprintf(name, sizeof name, "/proc/self/fd/%d", copy);
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) machine_fail("%s", dlerror());
  const int *processes = dlsym(library, "parcels_processes");
  if (processes && (machine.nodes < processes[0] || machine.nodes > processes[1])) {
    fprintf(stderr, "needs %d", processes[0]);
    if (processes[1] > processes[0]) fprintf(stderr, " to %d", processes[1]);
    fprintf(stderr, " processes, not %d\n", machine.nodes);
    exit(REFUSED);
  }
  void *found = dlsym(library, "parcels_main");
  if (!found) machine_fail("%s has no function main", path);
  return found;  // the file stays open: the loader recognises files by their number, which must not
                 // be used again
}

static void set(const char *text) {
  static const struct {
    const char *name;
    uint64_t *value;
  } fields[] = {{"latency", &machine.latency},
                {"bytes_per_cycle", &machine.bytes_per_cycle},
                {"open_page", &machine.open_page},
                {"closed_page", &machine.closed_page},
                {"l2", &machine.l2},
                {"depth", &machine.depth},
                {"row_bytes", &machine.row_bytes},
                {"banks", &machine.banks},
                {"row_copies", &machine.row_copies}};
  const size_t length = (size_t)(strchr(text, '=') - text);
  const char *value = text + length + 1;
  for (size_t i = 0; i < sizeof fields / sizeof *fields; ++i)
    if (strlen(fields[i].name) == length && !strncmp(fields[i].name, text, length)) {
      *fields[i].value = strtoull(value, 0, 10);
      return;
    }
  if (!strncmp(text, "nodes", length))
    machine.nodes = atoi(value);
  else if (!strncmp(text, "conventional", length))
    machine.is_conventional = atoi(value);
  else if (!strncmp(text, "checks", length))
    machine.checks = atoi(value);
  else if (!strncmp(text, "trace", length))
    machine.trace = fopen(value, "w");
  else if (!strncmp(text, "report", length))
    report = fopen(value, "w");
  else
    machine_fail("no field has the name of %s", text);
}

static void write_report(int blocked) {
  fprintf(report, "{\"nodes\":%d,\"cycles\":%lu,\"code\":%d,\"blocked\":[", machine.nodes,
          machine_end, first_code);
  const char *comma = "";
  for (int i = 0; blocked && i < machine.nodes; ++i) {
    const machine_thread *it = machine_nodes[i].main;
    if (!it) continue;
    fprintf(report, "%s{\"rank\":%d,\"call\":\"%s\"}", comma, i,
            machine_routines[it->routine].name);
    comma = ",";
  }
  fprintf(report, "],\"counts\":[");
  comma = "";
  for (unsigned i = 0; i < MAX_ROUTINES && machine_routines[i].name; ++i)
    for (unsigned c = 0; c < PIM_categories; ++c) {
      const counts *it = &machine_routines[i].of[c];
      if (!it->instructions && !it->references) continue;
      fprintf(report,
              "%s\n{\"call\":\"%s\",\"category\":\"%s\",\"instructions\":%lu,\"references\":%lu,"
              "\"cycles\":%.3f}",
              comma, machine_routines[i].name, machine_categories[c], it->instructions,
              it->references, (double)it->cycles_q16 / 65536);
      comma = ",";
    }
  fprintf(report, "]}\n");
  fclose(report);
}

/// Copies the arguments of the program to pages of their own. The stack of this process begins at a
/// random place within a page, and a copy of a path on the heap moves what the program allocates;
/// the counts must not depend on either.
static char **copy_arguments(char **words) {
  static char name[] = "program";  // not the path, which may have any length
  size_t bytes = ((size_t)argument_count + 1) * sizeof *words;
  const size_t start = bytes;
  for (int i = 1; i < argument_count; ++i) bytes += strlen(words[i]) + 1;
  char **made = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) machine_fail("no memory for arguments of %zu bytes", bytes);
  char *to = (char *)made + start;
  made[0] = name;
  for (int i = 1; i < argument_count; ++i) {
    made[i] = to;
    to = stpcpy(to, words[i]) + 1;
  }
  return made;
}

int main(int count, char **words) {
  int at = 1;
  for (; at < count && strchr(words[at], '=') && words[at][0] != '/'; ++at) set(words[at]);
  if (at == count || !report || machine.nodes < 1)
    machine_fail("usage: %s FIELD=VALUE ... PROGRAM", words[0]);
  const char *path = words[at];
  argument_count = count - at;
  arguments = copy_arguments(words + at);
  pages = mmap(0, PAGES * sizeof *pages, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  machine_nodes = calloc((size_t)machine.nodes, sizeof *machine_nodes);
  const size_t bytes = (engine_memory_bytes(machine.nodes) + 8191) / 4096 * 4096;
  char *memory = mmap(0, bytes * (size_t)machine.nodes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED || !machine_nodes || memory == MAP_FAILED)
    machine_fail("no memory for %d nodes of %zu bytes", machine.nodes, bytes);
  const int source = open(path, O_RDONLY | O_CLOEXEC);
  struct stat about;
  if (source < 0 || fstat(source, &about)) machine_fail("%s cannot be read", path);
  for (int i = 0; i < machine.nodes; ++i) {
    node *it = &machine_nodes[i];
    it->number = i;
    it->memory = memory + bytes * (size_t)i + (mpi_process_bytes() + 15) / 16 * 16;
    it->inbox_end = &it->inbox;
    if (machine.is_conventional) it->caches = conventional_caches();
    engine_boot(it->memory, machine.nodes);
  }
  for (int i = 0; i < machine.nodes; ++i) {
    machine_thread *made = machine_thread_of(&machine_nodes[i], 0, MAIN_STACK_BYTES, run_program);
    void *program = load(path, source, (size_t)about.st_size);
    memcpy(made->state, &program, sizeof program);
    machine_nodes[i].main = made;
    machine_ready(made);
  }
  const int blocked = machine_run();
  fflush(stdout);
  write_report(blocked);
  if (machine.trace) fclose(machine.trace);
  return blocked ? DEADLOCK : 0;
}

/* Runs kernels for whoever writes to its standard input: shared objects, loaded here, on copies of the caller's buffers.

   A request: path and symbol (length, then characters, as the others unless said: int64), start, stop, how many buffers
   and values; of each buffer its bytes, whether it stands at the start of its pages, and what lies in it; the values.
   The answer: what lies in the buffers afterwards. Before and behind the pages of each buffer is one that nobody may
   touch: a kernel that does so ends the process. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_REGIONS 64

static void receive(void *to, size_t count) {
  if (count && fread(to, 1, count, stdin) != count) exit(0);
}

static int64_t receive_number(void) {
  int64_t number;
  receive(&number, sizeof number);
  return number;
}

static char *receive_text(void) {
  int64_t length = receive_number();
  char *text = calloc(length + 1, 1);
  receive(text, length);
  return text;
}

static void fail(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(3);
}

int main(void) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  for (;;) {
    char *path = receive_text(), *symbol = receive_text();
    int64_t start = receive_number(), stop = receive_number();
    int64_t buffers = receive_number(), values = receive_number();
    if (buffers + values > MAX_REGIONS) fail("too many arguments");
    char *regions[MAX_REGIONS];
    void *arguments[MAX_REGIONS + 1];
    int64_t sizes[MAX_REGIONS], lengths[MAX_REGIONS];
    for (int64_t i = 0; i < buffers; i++) {
      sizes[i] = receive_number();
      int64_t at_start = receive_number();
      lengths[i] = (sizes[i] + page - 1) / page * page + (sizes[i] == 0) * page + 2 * page;
      regions[i] = mmap(NULL, lengths[i], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (regions[i] == MAP_FAILED) fail("no memory");
      memset(regions[i], 0xff, lengths[i]);
      arguments[i] = at_start ? regions[i] + page : regions[i] + lengths[i] - page - sizes[i];
      receive(arguments[i], sizes[i]);
      mprotect(regions[i], page, PROT_NONE);
      mprotect(regions[i] + lengths[i] - page, page, PROT_NONE);
    }
    for (int64_t i = 0; i < values; i++) arguments[buffers + i] = (void *)receive_number();
    void *library = dlopen(path, RTLD_NOW);
    if (!library) fail(dlerror());
    void (*entry)(void **, int64_t, int64_t) = (void (*)(void **, int64_t, int64_t))dlsym(library, symbol);
    if (!entry) fail(dlerror());
    entry(arguments, start, stop);
    for (int64_t i = 0; i < buffers; i++) {
      fwrite(arguments[i], 1, sizes[i], stdout);
      munmap(regions[i], lengths[i]);
    }
    fflush(stdout);
    free(path), free(symbol);
  }
}

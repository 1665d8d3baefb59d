/* Stands between a process and its disk, loaded before the C library: what a program writes by place (as SQLite does, and
   nothing else here) fails while a byte in a shared file says so.

   'F' full: a write that makes a file longer gets ENOSPC.   'W' a write gets EIO.   'S' fsync and fdatasync get EIO.
   The second byte is the share of the calls that fail, in 255ths. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const volatile unsigned char *control;
static atomic_uint calls = 1;

static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("TORTURE_DISK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  real_pwrite = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite64");
  real_fsync = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  real_fdatasync = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  if (file < 0) return;
  void *page = mmap(NULL, 2, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (page != MAP_FAILED) control = page;
}

static int strikes(char mode) {
  if (!control || control[0] != (unsigned char)mode) return 0;
  /* Spread over the calls without any state that threads could fight for. */
  unsigned call = atomic_fetch_add(&calls, 1) * 2654435761u;
  return (call >> 24) <= control[1];
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off_t place) {
  struct stat status;
  if (strikes('W')) {
    errno = EIO;
    return -1;
  }
  if (strikes('F') && fstat(file, &status) == 0 && place + (off_t)count > status.st_size) {
    errno = ENOSPC;
    return -1;
  }
  return real_pwrite(file, bytes, count, place);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t place) { return pwrite64(file, bytes, count, place); }

int fsync(int file) {
  if (strikes('S')) {
    errno = EIO;
    return -1;
  }
  return real_fsync(file);
}

int fdatasync(int file) {
  if (strikes('S')) {
    errno = EIO;
    return -1;
  }
  return real_fdatasync(file);
}

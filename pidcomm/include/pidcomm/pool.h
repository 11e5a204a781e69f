/* pool.h: a memory pool, which several hosts share.
 *
 *   pidcomm_pool_settings settings = PIDCOMM_POOL_SETTINGS_INITIALIZER;
 *   settings.name = "job7", settings.bytes = 64 << 20, settings.host = host, settings.hosts = 4;
 *   PIDCOMM_CHECK(pidcomm_pool_open(&settings, &pool));
 *
 * A host writes, all hosts call pidcomm_pool_sync, and then all hosts read. Every host maps the
 * same bytes, so a byte has the same offset on all hosts. As a transport (pidcomm_pool_transport),
 * local passes write rows straight into the pool and read rows of other hosts from it.
 *
 * A host is a process of this machine or, with coherence policy `hardware`, a process of any
 * machine that maps the same memory. A pool with a switch has one more process, which reduces rows
 * for all hosts (pidcomm_switch_run).
 *
 * If a host or the switch ends before it has closed the pool, then calls of the other hosts that
 * wait return ERR_DEVICE and name it. The library detects this within a second if the pool has a
 * name, or is a regular file with coherence policy `none`; otherwise the other hosts wait for
 * timeout_s. After an error all later calls return the same error.
 *
 * Pools with a name leave nothing behind: the name exists only until all hosts have opened the
 * pool, and the memory only as long as a process maps it. If a process is killed while hosts open
 * the pool, then its name stays until host 0 of any later pool of the same user opens a pool. The
 * name of the object has the process of its host 0 and a sequence number:
 * /dev/shm/pidcomm-pool-USER-NAME-PROCESS-SEQUENCE. Only the user has access to objects and files
 * that the library creates (0600). */
#ifndef PIDCOMM_POOL_H
#define PIDCOMM_POOL_H

#include <pidcomm/hosts.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A pool consists of pages of this size. */
#define PIDCOMM_POOL_PAGE_BYTES 4096

/* The memory of a pool, and the hosts that share it. Give exactly one of `name`, `path` and
 * `memory`. All hosts give the same values; only `host`, `memory`, `timeout_s` and
 * `switch_process` may differ. */
typedef struct pidcomm_pool_settings {
  PIDCOMM_SIZE(struct pidcomm_pool_settings);
  const char *name; /* of a POSIX shared memory object: 1 to 64 letters, digits, '-', '_' and '.' */
  const char *path; /* of a file, which host 0 creates if it is missing or empty, or of a device
                       such as /dev/dax0.0 */
  void *memory;     /* memory of at least `bytes` bytes that the program shares, for example by
                       MPI_Win_allocate_shared */
  size_t bytes;     /* of the pool, a multiple of 4096. The library itself uses
                       pidcomm_pool_own_bytes(hosts) of them */
  uint32_t host, hosts; /* the number of this host, from 0, and the number of hosts, at most 1024 */
  size_t has_switch;    /* 1: a process runs pidcomm_switch_run with these settings */
  size_t coherence; /* pidcomm_coherence; default: `none`. With `hardware`, hosts flush lines after
                       writes and before reads */
  double timeout_s; /* seconds to wait for other hosts; default: 300 */
  size_t switch_process; /* on host 0: the child process that runs the switch, so that its end is an
                            error even before it has opened the pool; default: unknown */
} pidcomm_pool_settings;
#define PIDCOMM_POOL_SETTINGS_INITIALIZER PIDCOMM_SIZE_OF(pidcomm_pool_settings)

typedef struct pidcomm_pool pidcomm_pool;

/* Returns the bytes that the library uses itself at the start of a pool. */
PIDCOMM_API size_t pidcomm_pool_own_bytes(uint32_t hosts);

/* Opens the pool, waits for all hosts and the switch, and stores it in *pool. Errors: ERR_ARGUMENT
 * (a setting is out of range, the settings of the hosts differ, another pool or host of this name
 * is open, or a file or device has another size or owner), ERR_MEMORY (there is not enough shared
 * memory), ERR_DEVICE (a host did not come in time or ended, or the system refuses access). */
PIDCOMM_API int pidcomm_pool_open(const pidcomm_pool_settings *settings, pidcomm_pool **pool);

/* Closes the pool. `pool` may be NULL. Does not wait for other hosts. */
PIDCOMM_API int pidcomm_pool_close(pidcomm_pool *pool);

/* Stores in *offset the offset of the next free `bytes` bytes, aligned to 64 bytes. All hosts make
 * the same allocations in the same order, and get the same offsets; pidcomm_pool_sync compares
 * them. Memory is freed when the pool is closed. Errors: ERR_MEMORY (the pool is too small). */
PIDCOMM_API int pidcomm_pool_allocate(pidcomm_pool *pool, size_t bytes, size_t *offset);

/* Copies `bytes` bytes between host memory and the pool. Errors: ERR_ARGUMENT (the bytes are not in
 * allocated memory). */
PIDCOMM_API int pidcomm_pool_write(pidcomm_pool *pool, size_t offset, size_t bytes,
                                   const void *host);
PIDCOMM_API int pidcomm_pool_read(pidcomm_pool *pool, size_t offset, size_t bytes, void *host);

/* As pidcomm_pool_write, and copies the bytes to `copy` in host memory. Takes less time than two
 * copies: it loads the bytes once. Errors: also ERR_ARGUMENT (`copy` overlaps `host`). */
PIDCOMM_API int pidcomm_pool_write_and_copy(pidcomm_pool *pool, size_t offset, size_t bytes,
                                            const void *host, void *copy);

/* Stores in *view the address of the `bytes` bytes in the pool, to read them in place. The bytes
 * change when a host writes them. *view is valid until the pool is closed; with coherence
 * `hardware`, only until the next sync. Errors: as pidcomm_pool_read. */
PIDCOMM_API int pidcomm_pool_view(pidcomm_pool *pool, size_t offset, size_t bytes,
                                  const void **view);

/* Waits until all hosts have called it as often. Afterwards a host reads what the hosts wrote
 * before. Errors: ERR_ARGUMENT (the hosts have allocated different memory, or another host
 * is in an allgather), ERR_DEVICE (a host or the switch has ended, or did not come in time). */
PIDCOMM_API int pidcomm_pool_sync(pidcomm_pool *pool);

/* Copies the `bytes` bytes of each host to `all` of all hosts, in host order. All hosts call it
 * with the same numbers. The bytes go through `area_bytes` bytes of allocated memory at `offset`, a
 * multiple of 64, in chunks of area_bytes / (2 * hosts) bytes, rounded down to a multiple of 64, at
 * least 64. Chunks of 512 KiB are fast: they stay in the caches until all hosts have read them.
 * Sync before other uses of the area. Errors: ERR_ARGUMENT (the area is too small or not in
 * allocated memory, the hosts make different calls, or `all` overlaps `host`), ERR_DEVICE as
 * pidcomm_pool_sync. */
PIDCOMM_API int pidcomm_pool_allgather(pidcomm_pool *pool, size_t offset, size_t area_bytes,
                                       size_t bytes, const void *host, void *all);

/* The switch carries out a reduction of rows in allocated memory; returns when it is done. Only
 * host 0 calls it, after a sync, and the other hosts meanwhile wait in the next sync. Errors:
 * ERR_ARGUMENT (the pool has no switch, this is not host 0, or the rows are not in allocated
 * memory), ERR_TYPE, ERR_OP, ERR_DEVICE as pidcomm_pool_sync. */
PIDCOMM_API int pidcomm_pool_reduce(pidcomm_pool *pool, const pidcomm_reduction *reduction);

/* Allocates `bytes` bytes of the pool for the collectives of a cube over hosts, and fills
 * *transport. If `bytes` is 0, takes all bytes that are free. Larger memory needs fewer pieces per
 * collective; 1024 * hosts + 128 * hosts * hosts * (PEs per host) bytes are enough for collectives
 * of any size. If they are the last allocation, pidcomm_hosts_disconnect frees the bytes. The pool
 * must outlive the cube, and no other thread uses it during a call. Errors: those of
 * pidcomm_pool_allocate. */
PIDCOMM_API int pidcomm_pool_transport(pidcomm_pool *pool, size_t bytes,
                                       pidcomm_transport *transport);

/* Runs the switch of a pool in this process, and returns when the last host has closed the pool or,
 * if the library detects that (see above), has ended. The settings are those of the hosts; `host`
 * is ignored. Errors: those of pidcomm_pool_open. */
PIDCOMM_API int pidcomm_switch_run(const pidcomm_pool_settings *settings);

#ifdef __cplusplus
}
#endif

#endif /* PIDCOMM_POOL_H */

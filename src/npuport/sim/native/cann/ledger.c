/* How much memory of each device the processes of one run hold together: a file in the launcher's directory of the run, mapped by all.
 *
 * Byte 0 of the file is locked while sums are taken. A process has one slot, and a lock on one byte for it: the kernel drops that lock
 * when the process ends, however it ends, and what it held counts no more. */
#include "stand_in.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PROCESSES = 512, UNKNOWN = -1 };
typedef struct { size_t held[PROCESSES][MAX_DEVICES]; } Ledger;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the threads; the file's lock is of the processes */
static Ledger* ledger;
static int file = UNKNOWN;
static int own_slot = UNKNOWN;
static pid_t owner; /* a forked child has none of its parent's memory */

static bool set_lock(int command, short kind, off_t byte, struct flock* request) {
    *request = (struct flock){.l_type = kind, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(file, command, request) == 0;
}

static bool is_alive(int slot) {
    struct flock request;
    return (slot == own_slot && owner == getpid()) || (set_lock(F_GETLK, F_WRLCK, slot + 1, &request) && request.l_type != F_UNLCK);
}

static bool open_ledger(void) {
    if (ledger) return true;
    const char* run = getenv("NPUPORT_SIM_RUN");
    char path[4096];
    if (run && *run && snprintf(path, sizeof path, "%s/memory", run) < (int)sizeof path) {
        file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
        if (file >= 0 && ftruncate(file, sizeof(Ledger))) close(file), file = UNKNOWN;
    }
    /* Without a launcher nobody else is on the machine. */
    int flags = file == UNKNOWN ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void* start = mmap(NULL, sizeof(Ledger), PROT_READ | PROT_WRITE, flags, file, 0);
    if (start == MAP_FAILED) return false;
    ledger = start;
    return true;
}

static void lock_file(void) {
    struct flock request;
    if (file != UNKNOWN) set_lock(F_SETLKW, F_WRLCK, 0, &request);
}

static void unlock_file(void) {
    struct flock request;
    if (file != UNKNOWN) set_lock(F_SETLK, F_UNLCK, 0, &request);
}

/* This process's slot, taken at its first allocation. */
static int slot_of_process(void) {
    if (owner == getpid()) return own_slot;
    owner = getpid();
    own_slot = UNKNOWN;
    struct flock request;
    for (int slot = 0; slot < PROCESSES && own_slot == UNKNOWN; slot++) {
        if (file != UNKNOWN && (is_alive(slot) || !set_lock(F_SETLK, F_WRLCK, slot + 1, &request))) continue;
        memset(ledger->held[slot], 0, sizeof ledger->held[slot]);
        own_slot = slot;
    }
    return own_slot;
}

static size_t held_by_all(int device) {
    size_t bytes = 0;
    for (int slot = 0; slot < PROCESSES; slot++) {
        if (!ledger->held[slot][device]) continue;
        if (file != UNKNOWN && !is_alive(slot)) memset(ledger->held[slot], 0, sizeof ledger->held[slot]);
        bytes += ledger->held[slot][device];
    }
    return bytes;
}

bool npuport_take_memory(int device, size_t size) {
    int physical = npuport_physical_device(device);
    size_t total = npuport_memory_total();
    pthread_mutex_lock(&lock);
    bool fits = open_ledger();
    if (fits) {
        lock_file();
        int slot = slot_of_process();
        fits = slot != UNKNOWN && size <= total && held_by_all(physical) <= total - size;
        if (fits) ledger->held[slot][physical] += size;
        unlock_file();
    }
    pthread_mutex_unlock(&lock);
    return fits;
}

void npuport_give_memory_back(int device, size_t size) {
    pthread_mutex_lock(&lock);
    if (ledger && owner == getpid()) ledger->held[own_slot][npuport_physical_device(device)] -= size;
    pthread_mutex_unlock(&lock);
}

size_t npuport_memory_used(int device) {
    int physical = npuport_physical_device(device);
    pthread_mutex_lock(&lock);
    size_t bytes = 0;
    if (open_ledger()) {
        lock_file();
        bytes = held_by_all(physical);
        unlock_file();
    }
    pthread_mutex_unlock(&lock);
    return bytes;
}

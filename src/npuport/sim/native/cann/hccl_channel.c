/* How ranks meet: a file mapped by all of them for barriers and short exchanges, and one file per message between two ranks.
 *
 * A message is written before it is announced and kept until it is fetched, so a send never waits for its receiver: programs that all
 * send first and receive then do not block each other. */
#include "hccl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double limit_ms(const char* variable, double seconds) {
    const char* text = getenv(variable);
    double value = text ? atof(text) : 0;
    return (value > 0 ? value : seconds) * 1e3;
}

static void sleep_on(_Atomic uint32_t* word, uint32_t value) {
    struct timespec pause = {0, 20 * 1000 * 1000};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &pause, NULL, 0);
}

static void wake(_Atomic uint32_t* word) { syscall(SYS_futex, word, FUTEX_WAKE, MAX_RANKS, NULL, NULL, 0); }

enum { NOT_YET = 0, LEFT = -1 }; /* instead of the number of a process */

static bool is_gone(int32_t process) { return process == LEFT || (process != NOT_YET && kill(process, 0) && errno == ESRCH); }

/* The first rank that will not answer any more, or -1. */
static int lost_rank(const Comm* comm) {
    for (uint32_t rank = 0; rank < comm->ranks; rank++)
        if (is_gone(comm->segment->process[rank])) return (int)rank;
    return -1;
}

/* Wait until `word` has passed `old`. HCCL's own variables bound the time. */
static HcclResult wait_for_change(const Comm* comm, _Atomic uint32_t* word, uint32_t old, double limit, const char* what) {
    double end = npuport_now_ms() + limit;
    for (int spin = 0; atomic_load(word) == old; spin++) {
        if (spin < 200) continue;
        sleep_on(word, old);
        if (atomic_load(word) != old) break;
        int lost = lost_rank(comm);
        if (lost >= 0 && atomic_load(word) == old) /* a rank may have answered and left since */
            return npuport_fail(HCCL_E_REMOTE, "%s: rank %d has ended or left the communicator", what, lost);
        if (npuport_now_ms() > end) return npuport_fail(HCCL_E_TIMEOUT, "%s: no answer within %.0f s", what, limit / 1e3);
    }
    return HCCL_SUCCESS;
}

HcclResult npuport_attach(Comm* comm, const char* directory, uint32_t ranks, uint32_t rank) {
    if (ranks > MAX_RANKS) return npuport_fail(HCCL_E_NOT_SUPPORT, "%u ranks; the simulation joins at most %d", ranks, MAX_RANKS);
    char path[PATH_BYTES + 16];
    snprintf(comm->directory, sizeof comm->directory, "%s", directory);
    snprintf(path, sizeof path, "%s/segment", directory);
    size_t head = (sizeof(Segment) + 4095) / 4096 * 4096, bytes = head + (size_t)SLOT_BYTES * ranks;
    int file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, (off_t)bytes)) {
        if (file >= 0) close(file);
        return npuport_fail(HCCL_E_SYSCALL, "cannot create %s: %s", path, strerror(errno));
    }
    char* start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (start == MAP_FAILED) return npuport_fail(HCCL_E_SYSCALL, "cannot map %s: %s", path, strerror(errno));
    comm->segment = (Segment*)start;
    comm->slots = start + head;
    comm->ranks = ranks;
    comm->rank = rank;
    comm->segment->process[rank] = getpid();
    atomic_fetch_add(&comm->segment->attached, 1);
    wake(&comm->segment->attached);
    for (uint32_t there; (there = atomic_load(&comm->segment->attached)) < ranks;) {
        HcclResult error = wait_for_change(comm, &comm->segment->attached, there, limit_ms("HCCL_CONNECT_TIMEOUT", 120), "joining the ranks");
        if (error) {
            npuport_detach(comm);
            return error;
        }
    }
    return HCCL_SUCCESS;
}

static void message_path(const Comm* comm, char* path, uint32_t from, uint32_t to, uint32_t number) {
    snprintf(path, PATH_BYTES + 64, "%s/%u-%u-%u", comm->directory, from, to, number);
}

/* The last rank removes what lies in the directory: the segment, and messages that nobody fetched. */
static void clear(const char* directory) {
    DIR* entries = opendir(directory);
    if (!entries) return;
    for (struct dirent* entry; (entry = readdir(entries));)
        if (entry->d_name[0] != '.') unlinkat(dirfd(entries), entry->d_name, 0);
    closedir(entries);
    rmdir(directory);
}

void npuport_detach(Comm* comm) {
    Segment* segment = comm->segment;
    segment->process[comm->rank] = LEFT;
    bool last = true;
    for (uint32_t rank = 0; rank < comm->ranks; rank++)
        if (segment->process[rank] != NOT_YET && !is_gone(segment->process[rank])) last = false;
    if (last) clear(comm->directory);
    munmap(segment, (size_t)(comm->slots - (char*)segment) + (size_t)SLOT_BYTES * comm->ranks);
}

HcclResult npuport_barrier(Comm* comm) {
    Segment* segment = comm->segment;
    uint32_t generation = atomic_load(&segment->generation);
    if (atomic_fetch_add(&segment->arrived, 1) + 1 == comm->ranks) {
        atomic_store(&segment->arrived, 0);
        atomic_fetch_add(&segment->generation, 1);
        wake(&segment->generation);
        return HCCL_SUCCESS;
    }
    return wait_for_change(comm, &segment->generation, generation, limit_ms("HCCL_EXEC_TIMEOUT", 1836), "waiting for the other ranks");
}

static bool write_all(int file, const char* data, size_t bytes) {
    while (bytes) {
        ssize_t done = write(file, data, bytes);
        if (done <= 0) return false;
        data += done;
        bytes -= (size_t)done;
    }
    return true;
}

static bool read_all(int file, char* data, size_t bytes) {
    while (bytes) {
        ssize_t done = read(file, data, bytes);
        if (done <= 0) return false;
        data += done;
        bytes -= (size_t)done;
    }
    return true;
}

HcclResult npuport_send(Comm* comm, const void* data, size_t bytes, uint32_t to) {
    if (to >= comm->ranks) return npuport_fail(HCCL_E_PARA, "send to rank %u of %u", to, comm->ranks);
    _Atomic uint32_t* sent = &comm->segment->sent[comm->rank][to];
    char path[PATH_BYTES + 64];
    message_path(comm, path, comm->rank, to, atomic_load(sent));
    int file = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    bool written = file >= 0 && write_all(file, data, bytes);
    if (file >= 0) close(file);
    if (!written) return npuport_fail(HCCL_E_SYSCALL, "cannot write %s: %s", path, strerror(errno));
    atomic_fetch_add(sent, 1);
    wake(sent);
    return HCCL_SUCCESS;
}

HcclResult npuport_receive(Comm* comm, void* data, size_t bytes, uint32_t from) {
    if (from >= comm->ranks) return npuport_fail(HCCL_E_PARA, "receive from rank %u of %u", from, comm->ranks);
    _Atomic uint32_t* sent = &comm->segment->sent[from][comm->rank];
    uint32_t number = comm->received[from];
    HcclResult error = wait_for_change(comm, sent, number, limit_ms("HCCL_EXEC_TIMEOUT", 1836), "waiting for a message");
    if (error) return error;
    char path[PATH_BYTES + 64];
    message_path(comm, path, from, comm->rank, number);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool complete = file >= 0 && read_all(file, data, bytes);
    if (file >= 0) close(file);
    unlink(path);
    comm->received[from]++;
    return complete ? HCCL_SUCCESS : npuport_fail(HCCL_E_PARA, "rank %u sent less than the %zu bytes that rank %u expects", from, bytes, comm->rank);
}

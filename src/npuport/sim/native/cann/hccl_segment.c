/* How ranks meet: they map the same file, which has no name, so the memory is gone when the last process that uses it is, however it ends.
 * A rank finds the file through a process that holds it open (/proc). Waiting is sleeping on a word of that memory (futex). */
#include "hccl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A rank that is lost is reported a little later: its launcher should be able to say first why it ended, and ends the others itself. One
 * that has left and still runs is about to end, as a rule. */
enum { NOT_YET = 0, POLL_MS = 100, ENDED_GRACE_MS = 5000, LEFT_GRACE_MS = 20000 };

double npuport_limit_ms(const char* variable, double seconds) {
    const char* text = getenv(variable);
    double value = text ? atof(text) : 0;
    return (value > 0 ? value : seconds) * 1e3;
}

/* The 22nd field of /proc/N/stat: when the process started. 0: there is none, or it has ended and only waits to be fetched by its parent. */
static uint64_t start_of(int32_t process) {
    char path[64], text[1024], state = 'Z';
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) return 0;
    text[length] = '\0';
    const char* after_name = strrchr(text, ')');
    unsigned long long started = 0;
    if (!after_name || sscanf(after_name + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state, &started) != 2) return 0;
    return state == 'Z' || state == 'X' ? 0 : started;
}

Process npuport_this_process(void) { return (Process){(int32_t)getpid(), start_of((int32_t)getpid())}; }
bool npuport_is_running(const Process* process) { return start_of(process->process) == process->started; }

static bool has_ended(const Member* member) {
    int32_t process = atomic_load(&member->process);
    return process != NOT_YET && !npuport_is_running(&(Process){process, member->started});
}

/* The first rank of those in question (-1: all) that will not answer any more, or -1. */
static int lost_rank(const Comm* comm, int peer) {
    for (uint32_t rank = 0; rank < comm->ranks; rank++)
        if ((peer < 0 || rank == (uint32_t)peer) && rank != comm->rank) {
            const Member* member = &comm->segment->members[rank];
            if (atomic_load(&member->left) || has_ended(member)) return (int)rank;
        }
    return -1;
}

static void sleep_on(_Atomic uint32_t* word, uint32_t value) {
    struct timespec pause = {0, POLL_MS * 1000000L};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &pause, NULL, 0);
}

void npuport_wake(_Atomic uint32_t* word) { syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0); }

static HcclResult lost(const Comm* comm, int rank, const char* code, const char* what) {
    const Member* member = &comm->segment->members[rank];
    if (atomic_load(&member->left))
        return npuport_fail(HCCL_E_REMOTE, "%s: HCCL communicator %s, rank %u, %s: rank %d has left it", code, comm->name, comm->rank, what, rank);
    return npuport_fail(HCCL_E_REMOTE, "%s: HCCL communicator %s, rank %u, %s: rank %d (process %d) has ended", code, comm->name, comm->rank, what, rank,
                        atomic_load(&member->process));
}

/* Wait until `word` has passed `old`; `peer` is the rank that must do it, -1 any. */
HcclResult npuport_await(Comm* comm, _Atomic uint32_t* word, uint32_t old, int peer, double limit_ms, const char* what) {
    /* What HCCL reports when a link is not set up in time, and when a call waits too long. */
    const char* code = word == &comm->segment->attached ? "EI0006" : "EI0002";
    double end = npuport_now_ms() + limit_ms, lost_since = 0;
    bool had_ended = false;
    while (atomic_load(word) == old) {
        sleep_on(word, old);
        if (atomic_load(word) != old) break;
        if (comm->closing) return npuport_fail(HCCL_E_UNAVAIL, "HCCL communicator %s was destroyed while rank %u was %s", comm->name, comm->rank, what);
        if (atomic_load(&comm->segment->failed)) return npuport_fail(HCCL_E_REMOTE, "%s", comm->segment->failure);
        int rank = lost_rank(comm, peer);
        double now = npuport_now_ms();
        bool ended = rank >= 0 && has_ended(&comm->segment->members[rank]);
        if (rank >= 0 && (!lost_since || ended != had_ended)) lost_since = now, had_ended = ended;
        if (rank >= 0 && now - lost_since > (ended ? ENDED_GRACE_MS : LEFT_GRACE_MS) && atomic_load(word) == old) return lost(comm, rank, code, what);
        if (now > end)
            return npuport_fail(HCCL_E_TIMEOUT, "%s: HCCL communicator %s, rank %u, %s: no answer within %.0f s", code, comm->name, comm->rank, what, limit_ms / 1e3);
    }
    return HCCL_SUCCESS;
}

/* What one rank finds wrong ends the wait of the others too. It is said here, for torch_npu's watchdog often ends the process before a call could. */
void npuport_announce_failure(Comm* comm, const char* text) {
    uint32_t none = 0;
    if (!comm->segment || atomic_load(&comm->segment->failed)) return;
    snprintf(comm->segment->failure, sizeof comm->segment->failure, "%s", text);
    bool first = atomic_compare_exchange_strong(&comm->segment->failed, &none, comm->rank + 1);
    if (first && !comm->closing) fprintf(stderr, "npuport simulated NPU: %s\n", text);
}

HcclResult npuport_new_place(Place* place) {
    int file = memfd_create("npuport-hccl", MFD_CLOEXEC);
    if (file < 0) return npuport_fail(HCCL_E_SYSCALL, "cannot make shared memory: %s", strerror(errno));
    *place = (Place){npuport_this_process(), file};
    return HCCL_SUCCESS;
}

static int open_place(const Place* place) {
    if (place->holder.process == (int32_t)getpid()) return fcntl(place->file, F_DUPFD_CLOEXEC, 0);
    if (!npuport_is_running(&place->holder)) {
        errno = ESRCH;
        return -1;
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", place->holder.process, place->file);
    return open(path, O_RDWR | O_CLOEXEC);
}

static HcclResult map(Comm* comm, const Place* place) {
    size_t head = (sizeof(Segment) + 4095) / 4096 * 4096;
    comm->bytes = head + (size_t)comm->ranks * 2 * SLOT_BYTES;
    comm->file = open_place(place);
    if (comm->file < 0)
        return npuport_fail(HCCL_E_SYSCALL, "HCCL communicator %s: cannot open the memory that process %d holds: %s", comm->name, place->holder.process, strerror(errno));
    char* start = ftruncate(comm->file, (off_t)comm->bytes) ? MAP_FAILED : mmap(NULL, comm->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, comm->file, 0);
    if (start == MAP_FAILED) {
        close(comm->file);
        return npuport_fail(HCCL_E_SYSCALL, "HCCL communicator %s: cannot map %zu bytes: %s", comm->name, comm->bytes, strerror(errno));
    }
    comm->segment = (Segment*)start;
    comm->slots = start + head;
    return HCCL_SUCCESS;
}

HcclResult npuport_attach(Comm* comm, const Place* place, uint32_t ranks, uint32_t rank) {
    if (ranks == 0 || rank >= ranks) return npuport_fail(HCCL_E_PARA, "rank %u of %u ranks", rank, ranks);
    if (ranks > MAX_RANKS) return npuport_fail(HCCL_E_NOT_SUPPORT, "%u ranks; the simulation joins at most %d", ranks, MAX_RANKS);
    comm->ranks = ranks;
    comm->rank = rank;
    HcclResult error = map(comm, place);
    if (error) return error;
    Process self = npuport_this_process();
    comm->segment->members[rank].started = self.started;
    atomic_store(&comm->segment->members[rank].process, self.process);
    uint64_t none = 0;
    atomic_compare_exchange_strong(&comm->segment->end, &none, comm->bytes);
    atomic_fetch_add(&comm->segment->attached, 1);
    npuport_wake(&comm->segment->attached);
    return HCCL_SUCCESS;
}

HcclResult npuport_await_others(Comm* comm) {
    double limit = npuport_limit_ms("HCCL_CONNECT_TIMEOUT", 120);
    HcclResult error = HCCL_SUCCESS;
    for (uint32_t there; (there = atomic_load(&comm->segment->attached)) < comm->ranks && !error;)
        error = npuport_await(comm, &comm->segment->attached, there, -1, limit, "waiting for the other ranks to join");
    return error;
}

void npuport_leave(Comm* comm) {
    atomic_store(&comm->segment->members[comm->rank].left, true);
    npuport_wake(&comm->segment->generation);
    npuport_wake(&comm->segment->attached);
}

void npuport_detach(Comm* comm) {
    munmap(comm->segment, comm->bytes);
    close(comm->file);
    comm->segment = NULL;
}

HcclResult npuport_barrier(Comm* comm) {
    Segment* segment = comm->segment;
    uint32_t generation = atomic_load(&segment->generation);
    if (atomic_fetch_add(&segment->arrived, 1) + 1 == comm->ranks) {
        atomic_store(&segment->arrived, 0);
        atomic_fetch_add(&segment->generation, 1);
        npuport_wake(&segment->generation);
        return HCCL_SUCCESS;
    }
    return npuport_await(comm, &segment->generation, generation, -1, comm->limit_ms, "waiting for the other ranks");
}

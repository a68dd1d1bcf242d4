/* Where the ranks of a communicator meet when no root's information is passed around: in their parent, or at the path of a rank table. */
#include "hccl.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

static uint64_t hash_of(const void* data, size_t bytes) {
    uint64_t hash = 1469598103934665603ULL; /* FNV-1a */
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ ((const unsigned char*)data)[i]) * 1099511628211ULL;
    return hash;
}

static HcclResult announce_child(Segment* segment, uint64_t id, uint64_t members, Place* place) {
    HcclResult error = npuport_new_place(place);
    if (error) return error;
    uint32_t index = atomic_fetch_add(&segment->children, 1);
    if (index >= MAX_CHILDREN) return npuport_fail(HCCL_E_UNAVAIL, "more than %d communicators of one parent", MAX_CHILDREN);
    Child* child = &segment->child[index];
    child->id = id, child->members = members, child->place = *place;
    atomic_fetch_add(&child->taken, 1);
    atomic_store(&child->ready, 1);
    npuport_wake(&child->ready);
    npuport_wake(&segment->children);
    return HCCL_SUCCESS;
}

/* Making one is a call of all its members, so an entry that is not taken by all of them is the one they are all coming to. */
static HcclResult find_child(Comm* parent, uint64_t id, uint64_t members, uint32_t ranks, Place* place) {
    Segment* segment = parent->segment;
    double limit = npuport_limit_ms("HCCL_CONNECT_TIMEOUT", 120);
    for (uint32_t index = 0;; index++) {
        HcclResult error = HCCL_SUCCESS;
        if (index >= atomic_load(&segment->children)) error = npuport_await(parent, &segment->children, index, -1, limit, "waiting for a communicator of some ranks");
        if (error) return error;
        Child* child = &segment->child[index];
        if (!atomic_load(&child->ready)) error = npuport_await(parent, &child->ready, 0, -1, limit, "waiting for a communicator of some ranks");
        if (error) return error;
        if (child->id != id || child->members != members || atomic_load(&child->taken) >= ranks) continue;
        atomic_fetch_add(&child->taken, 1);
        *place = child->place;
        return HCCL_SUCCESS;
    }
}

HcclResult npuport_child_place(Comm* parent, uint64_t id, const uint32_t* members, uint32_t ranks, uint32_t rank, Place* place) {
    uint64_t hash = hash_of(members, ranks * sizeof *members);
    return rank == 0 ? announce_child(parent->segment, id, hash, place) : find_child(parent, id, hash, ranks, place);
}

/* A rank table lists each rank with its "rank_id". */
static HcclResult count_ranks(const char* path, uint32_t* ranks) {
    FILE* file = fopen(path, "r");
    if (!file) return npuport_fail(HCCL_E_OPEN_FILE_FAILURE, "EI0004: the rank table %s cannot be read: %s", path, strerror(errno));
    char* text = NULL;
    size_t room = 0;
    ssize_t length = getdelim(&text, &room, '\0', file);
    fclose(file);
    *ranks = 0;
    for (const char* at = length > 0 ? strstr(text, "\"rank_id\"") : NULL; at; at = strstr(at + 1, "\"rank_id\"")) ++*ranks;
    free(text);
    return *ranks ? HCCL_SUCCESS : npuport_fail(HCCL_E_PARA, "EI0004: the rank table %s lists no \"rank_id\"", path);
}

typedef struct { Place place; uint32_t taken; } Meeting;

/* The first to come writes where the memory is; the last to come removes the note. */
static HcclResult meet_at(const char* note, uint32_t ranks, Place* place) {
    int file = open(note, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0 || flock(file, LOCK_EX)) {
        if (file >= 0) close(file);
        return npuport_fail(HCCL_E_SYSCALL, "cannot write %s: %s", note, strerror(errno));
    }
    Meeting meeting;
    bool known = pread(file, &meeting, sizeof meeting, 0) == sizeof meeting && meeting.taken < ranks && npuport_is_running(&meeting.place.holder);
    HcclResult error = known ? HCCL_SUCCESS : npuport_new_place(&meeting.place);
    meeting.taken = known ? meeting.taken + 1 : 1;
    if (!error && pwrite(file, &meeting, sizeof meeting, 0) != sizeof meeting) error = npuport_fail(HCCL_E_SYSCALL, "cannot write %s: %s", note, strerror(errno));
    if (meeting.taken == ranks) unlink(note);
    close(file);
    *place = meeting.place;
    return error;
}

HcclResult npuport_table_place(const char* path, uint32_t* ranks, Place* place) {
    HcclResult error = count_ranks(path, ranks);
    if (error) return error;
    char whole[4096], note[4352];
    if (!realpath(path, whole)) return npuport_fail(HCCL_E_OPEN_FILE_FAILURE, "EI0004: the rank table %s cannot be read: %s", path, strerror(errno));
    const char* directory = getenv("NPUPORT_SIM_RUN"); /* the launcher's directory for this run */
    if (!directory || !*directory) directory = getenv("TMPDIR");
    if (!directory || !*directory) directory = "/tmp";
    snprintf(note, sizeof note, "%s/npuport-ranks-%u-%016llx", directory, (unsigned)getuid(), (unsigned long long)hash_of(whole, strlen(whole)));
    return meet_at(note, *ranks, place);
}

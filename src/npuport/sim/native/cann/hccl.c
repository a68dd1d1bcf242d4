/* HCCL's functions. All block until their part is done, which is when the stream would have done it. */
#include "hccl.h"

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROOT_INFO_BYTES = 4108, CONFIG_NAME_OFFSET = 32 };

HcclResult HcclGetRootInfo(char* info) {
    const char* place = getenv("NPUPORT_SIM_RUN"); /* the launcher's directory for this run */
    if (!place || !*place) place = getenv("TMPDIR");
    if (!place || !*place) place = "/tmp";
    memset(info, 0, ROOT_INFO_BYTES);
    snprintf(info, PATH_BYTES, "%s/npuport-hccl-XXXXXX", place);
    return mkdtemp(info) ? HCCL_SUCCESS : npuport_fail(HCCL_E_SYSCALL, "cannot create a directory in %s: %s", place, strerror(errno));
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Comm* live;

static void add(Comm* comm) {
    pthread_mutex_lock(&lock);
    comm->next = live;
    live = comm;
    pthread_mutex_unlock(&lock);
}

static bool take_out(const Comm* comm) {
    bool found = false;
    pthread_mutex_lock(&lock);
    for (Comm** at = &live; *at && !found; at = &(*at)->next)
        if (*at == comm) {
            *at = comm->next;
            found = true;
            break;
        }
    pthread_mutex_unlock(&lock);
    return found;
}

/* Programs end without destroying their communicators; their files should not outlive them. */
static __attribute__((destructor)) void leave_all(void) {
    for (Comm *comm = live, *next; comm; comm = next) {
        next = comm->next;
        if (comm->owner == getpid()) npuport_detach(comm);
    }
}

static HcclResult join(const char* directory, uint32_t ranks, uint32_t rank, const char* name, void** out) {
    Comm* comm = calloc(1, sizeof *comm);
    const char* own_name = strrchr(directory, '/');
    snprintf(comm->name, sizeof comm->name, "%s", name && *name ? name : own_name ? own_name + 1 : directory);
    HcclResult error = npuport_attach(comm, directory, ranks, rank);
    if (error) {
        free(comm);
        return error;
    }
    comm->owner = getpid();
    add(comm);
    *out = comm;
    return HCCL_SUCCESS;
}

HcclResult HcclCommInitRootInfo(uint32_t ranks, const char* info, uint32_t rank, void** out) { return join(info, ranks, rank, NULL, out); }

HcclResult HcclCommInitRootInfoConfig(uint32_t ranks, const char* info, uint32_t rank, const char* configuration, void** out) {
    return join(info, ranks, rank, configuration ? configuration + CONFIG_NAME_OFFSET : NULL, out);
}

HcclResult HcclCreateSubCommConfig(void** parent, uint32_t ranks, const uint32_t* members, uint64_t id, uint32_t rank, const char* configuration, void** out) {
    if (!members) { /* a rank outside the group only agrees that it exists */
        *out = NULL;
        return HCCL_SUCCESS;
    }
    char directory[PATH_BYTES + 32];
    snprintf(directory, sizeof directory, "%s-%llu-%u", ((Comm*)*parent)->directory, (unsigned long long)id, members[0]);
    mkdir(directory, 0700); /* the first rank makes it */
    return join(directory, ranks, rank, configuration ? configuration + CONFIG_NAME_OFFSET : NULL, out);
}

HcclResult HcclCommDestroy(void* comm) {
    if (!take_out(comm)) return npuport_fail(HCCL_E_PARA, "the communicator is not known");
    npuport_detach(comm);
    free(comm);
    return HCCL_SUCCESS;
}

HcclResult HcclGetCommName(void* comm, char* name) {
    snprintf(name, NAME_BYTES, "%s", ((Comm*)comm)->name);
    return HCCL_SUCCESS;
}

HcclResult HcclGetRankSize(void* comm, uint32_t* ranks) {
    *ranks = ((Comm*)comm)->ranks;
    return HCCL_SUCCESS;
}

HcclResult HcclGetRankId(void* comm, uint32_t* rank) {
    *rank = ((Comm*)comm)->rank;
    return HCCL_SUCCESS;
}

HcclResult HcclGetCommAsyncError(void* comm, HcclResult* error) {
    (void)comm;
    *error = HCCL_SUCCESS; /* every error was returned by the call that met it */
    return HCCL_SUCCESS;
}

/* Options of a communicator beyond its name change nothing here, so none is announced: torch_npu then does not set them. */
uint32_t HcclGetCommConfigCapability(void) { return 3; /* buffer size, determinism and name are understood */ }

static int settings[2];
HcclResult HcclSetConfig(int name, int value) {
    if (name < 0 || name > 1) return npuport_fail(HCCL_E_PARA, "unknown HCCL setting %d", name);
    settings[name] = value;
    return HCCL_SUCCESS;
}

HcclResult HcclGetConfig(int name, int* value) {
    if (name < 0 || name > 1) return npuport_fail(HCCL_E_PARA, "unknown HCCL setting %d", name);
    *value = settings[name];
    return HCCL_SUCCESS;
}

const char* HcclGetErrorString(HcclResult code) {
    switch (code) {
        case HCCL_SUCCESS: return "no error";
        case HCCL_E_PARA: return "parameter error";
        case HCCL_E_NOT_SUPPORT: return "not supported";
        case HCCL_E_SYSCALL: return "system call failed";
        case HCCL_E_TIMEOUT: return "timeout";
        case HCCL_E_REMOTE: return "a remote rank has failed";
        default: return "internal error";
    }
}

HcclResult HcclBarrier(void* comm, void* stream) {
    (void)stream;
    return npuport_barrier(comm);
}

/* All ranks show `count` elements each, a slot's length at a time; `take` sees the slots while nobody changes them. */
typedef HcclResult Take(Comm* comm, void* out, size_t from, size_t count, size_t width, void* how);

static HcclResult exchange(Comm* comm, const void* in, size_t mine, size_t longest, int type, void* out, Take* take, void* how) {
    size_t width = npuport_element_bytes(type);
    if (!width) return npuport_fail(HCCL_E_NOT_SUPPORT, "HCCL data type %d", type);
    size_t step = SLOT_BYTES / width;
    for (size_t from = 0; from < longest; from += step) {
        size_t shown = from >= mine ? 0 : mine - from < step ? mine - from : step;
        if (in && shown) memcpy(npuport_slot(comm, comm->rank), (const char*)in + from * width, shown * width);
        HcclResult error = npuport_barrier(comm);
        if (!error) error = take(comm, out, from, longest - from < step ? longest - from : step, width, how);
        if (!error) error = npuport_barrier(comm);
        if (error) return error;
    }
    return HCCL_SUCCESS;
}

typedef struct { int type, operation; bool wanted; size_t begin, end; } Reduction; /* of the elements [begin, end) */

static HcclResult take_reduced(Comm* comm, void* out, size_t from, size_t count, size_t width, void* how) {
    const Reduction* r = how;
    size_t begin = from > r->begin ? from : r->begin, end = from + count < r->end ? from + count : r->end;
    if (!r->wanted || begin >= end) return HCCL_SUCCESS;
    char* to = (char*)out + (begin - r->begin) * width;
    size_t skip = (begin - from) * width;
    memcpy(to, npuport_slot(comm, 0) + skip, (end - begin) * width);
    for (uint32_t rank = 1; rank < comm->ranks; rank++) {
        HcclResult error = npuport_combine(to, npuport_slot(comm, rank) + skip, end - begin, r->type, r->operation);
        if (error) return error;
    }
    return HCCL_SUCCESS;
}

HcclResult HcclAllReduce(const void* in, void* out, uint64_t count, int type, int operation, void* comm, void* stream) {
    (void)stream;
    return exchange(comm, in, count, count, type, out, take_reduced, &(Reduction){type, operation, true, 0, count});
}

HcclResult HcclReduce(const void* in, void* out, uint64_t count, int type, int operation, uint32_t root, void* comm, void* stream) {
    (void)stream;
    bool wanted = ((Comm*)comm)->rank == root;
    return exchange(comm, in, count, count, type, out, take_reduced, &(Reduction){type, operation, wanted, 0, count});
}

HcclResult HcclReduceScatter(const void* in, void* out, uint64_t count, int type, int operation, void* comm, void* stream) {
    (void)stream;
    const Comm* c = comm;
    Reduction mine = {type, operation, true, c->rank * count, (c->rank + 1) * count};
    return exchange(comm, in, count * c->ranks, count * c->ranks, type, out, take_reduced, &mine);
}

HcclResult HcclReduceScatterV(const void* in, const uint64_t* counts, const uint64_t* offsets, void* out, uint64_t count, int type, int operation, void* comm, void* stream) {
    (void)stream;
    const Comm* c = comm;
    uint64_t total = 0;
    for (uint32_t rank = 0; rank < c->ranks; rank++)
        if (offsets[rank] + counts[rank] > total) total = offsets[rank] + counts[rank];
    Reduction mine = {type, operation, true, offsets[c->rank], offsets[c->rank] + count};
    return exchange(comm, in, total, total, type, out, take_reduced, &mine);
}

typedef struct { const uint64_t *counts, *offsets; } Places; /* where the elements of each rank go */

static HcclResult take_gathered(Comm* comm, void* out, size_t from, size_t count, size_t width, void* how) {
    const Places* places = how;
    for (uint32_t rank = 0; rank < comm->ranks; rank++) {
        size_t there = places->counts[rank] <= from ? 0 : places->counts[rank] - from < count ? places->counts[rank] - from : count;
        memcpy((char*)out + (places->offsets[rank] + from) * width, npuport_slot(comm, rank), there * width);
    }
    return HCCL_SUCCESS;
}

HcclResult HcclAllGatherV(const void* in, uint64_t count, void* out, const uint64_t* counts, const uint64_t* offsets, int type, void* comm, void* stream) {
    (void)stream;
    uint64_t longest = 0;
    for (uint32_t rank = 0; rank < ((Comm*)comm)->ranks; rank++)
        if (counts[rank] > longest) longest = counts[rank];
    return exchange(comm, in, count, longest, type, out, take_gathered, &(Places){counts, offsets});
}

HcclResult HcclAllGather(const void* in, void* out, uint64_t count, int type, void* comm, void* stream) {
    uint64_t counts[MAX_RANKS], offsets[MAX_RANKS];
    for (uint32_t rank = 0; rank < ((Comm*)comm)->ranks; rank++) counts[rank] = count, offsets[rank] = rank * count;
    return HcclAllGatherV(in, count, out, counts, offsets, type, comm, stream);
}

typedef struct { uint32_t root; } Source;

static HcclResult take_from_root(Comm* comm, void* out, size_t from, size_t count, size_t width, void* how) {
    const Source* source = how;
    if (comm->rank != source->root) memcpy((char*)out + from * width, npuport_slot(comm, source->root), count * width);
    return HCCL_SUCCESS;
}

HcclResult HcclBroadcast(void* data, uint64_t count, int type, uint32_t root, void* comm, void* stream) {
    (void)stream;
    return exchange(comm, ((Comm*)comm)->rank == root ? data : NULL, count, count, type, data, take_from_root, &(Source){root});
}

HcclResult HcclSend(const void* data, uint64_t count, int type, uint32_t to, void* comm, void* stream) {
    (void)stream;
    return npuport_send(comm, data, count * npuport_element_bytes(type), to);
}

/* Inside a group the order of sends and receives must not matter: sends do not wait, and receives wait for the end of the group. */
typedef struct { Comm* comm; void* data; size_t bytes; uint32_t from; } Receive;
static _Thread_local struct { int depth; size_t count; Receive receives[4096]; } group;

HcclResult HcclRecv(void* data, uint64_t count, int type, uint32_t from, void* comm, void* stream) {
    (void)stream;
    size_t bytes = count * npuport_element_bytes(type);
    if (!group.depth) return npuport_receive(comm, data, bytes, from);
    if (group.count == sizeof group.receives / sizeof *group.receives) return npuport_fail(HCCL_E_NOT_SUPPORT, "more than %zu receives in a group", group.count);
    group.receives[group.count++] = (Receive){comm, data, bytes, from};
    return HCCL_SUCCESS;
}

HcclResult HcclGroupStart(void) {
    group.depth++;
    return HCCL_SUCCESS;
}

HcclResult HcclGroupEnd(void) {
    if (group.depth == 0) return npuport_fail(HCCL_E_PARA, "HcclGroupEnd without HcclGroupStart");
    if (--group.depth) return HCCL_SUCCESS;
    HcclResult error = HCCL_SUCCESS;
    for (size_t i = 0; i < group.count && !error; i++) {
        const Receive* receive = &group.receives[i];
        error = npuport_receive(receive->comm, receive->data, receive->bytes, receive->from);
    }
    group.count = 0;
    return error;
}

HcclResult HcclScatter(const void* in, void* out, uint64_t count, int type, uint32_t root, void* comm, void* stream) {
    (void)stream;
    Comm* c = comm;
    size_t bytes = count * npuport_element_bytes(type);
    if (c->rank != root) return npuport_receive(c, out, bytes, root);
    for (uint32_t rank = 0; rank < c->ranks; rank++) {
        const char* share = (const char*)in + rank * bytes;
        if (rank == root) memmove(out, share, bytes);
        else if (npuport_send(c, share, bytes, rank)) return HCCL_E_SYSCALL;
    }
    return HCCL_SUCCESS;
}

HcclResult HcclAlltoAllV(const void* in, const uint64_t* send_counts, const uint64_t* send_offsets, int send_type, void* out,
                         const uint64_t* receive_counts, const uint64_t* receive_offsets, int receive_type, void* comm, void* stream) {
    (void)stream;
    Comm* c = comm;
    size_t in_width = npuport_element_bytes(send_type), out_width = npuport_element_bytes(receive_type);
    for (uint32_t rank = 0; rank < c->ranks; rank++) {
        HcclResult error = npuport_send(c, (const char*)in + send_offsets[rank] * in_width, send_counts[rank] * in_width, rank);
        if (error) return error;
    }
    for (uint32_t rank = 0; rank < c->ranks; rank++) {
        HcclResult error = npuport_receive(c, (char*)out + receive_offsets[rank] * out_width, receive_counts[rank] * out_width, rank);
        if (error) return error;
    }
    return HCCL_SUCCESS;
}

HcclResult HcclAlltoAll(const void* in, uint64_t send_count, int send_type, void* out, uint64_t receive_count, int receive_type, void* comm, void* stream) {
    uint64_t sent[MAX_RANKS], from[MAX_RANKS], received[MAX_RANKS], to[MAX_RANKS];
    for (uint32_t rank = 0; rank < ((Comm*)comm)->ranks; rank++) {
        sent[rank] = send_count, from[rank] = rank * send_count;
        received[rank] = receive_count, to[rank] = rank * receive_count;
    }
    return HcclAlltoAllV(in, sent, from, send_type, out, received, to, receive_type, comm, stream);
}

/* One matrix says for every pair of ranks how much goes from the row to the column. */
HcclResult HcclAlltoAllVC(const void* in, const uint64_t* matrix, int send_type, void* out, int receive_type, void* comm, void* stream) {
    const Comm* c = comm;
    uint64_t sent[MAX_RANKS], from[MAX_RANKS], received[MAX_RANKS], to[MAX_RANKS], out_at = 0, in_at = 0;
    for (uint32_t rank = 0; rank < c->ranks; rank++) {
        sent[rank] = matrix[c->rank * c->ranks + rank], from[rank] = in_at, in_at += sent[rank];
        received[rank] = matrix[rank * c->ranks + c->rank], to[rank] = out_at, out_at += received[rank];
    }
    return HcclAlltoAllV(in, sent, from, send_type, out, received, to, receive_type, comm, stream);
}

typedef struct { int kind; void* data; uint64_t count; int type; uint32_t remote; } SendReceive; /* kind: 0 send, 1 receive */

HcclResult HcclBatchSendRecv(const SendReceive* items, uint32_t count, void* comm, void* stream) {
    for (int kind = 0; kind < 2; kind++) /* sends do not wait, so all of them go first */
        for (uint32_t i = 0; i < count; i++) {
            const SendReceive* item = &items[i];
            if (item->kind != kind) continue;
            HcclResult error = kind == 0 ? HcclSend(item->data, item->count, item->type, item->remote, comm, stream)
                                         : HcclRecv(item->data, item->count, item->type, item->remote, comm, stream);
            if (error) return error;
        }
    return HCCL_SUCCESS;
}

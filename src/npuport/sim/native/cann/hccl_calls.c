/* HCCL's calls: each is checked, given its number in its communicator, and left in its stream. */
#include "hccl.h"

/* A call and the arrays it was given, which the caller may change as soon as HCCL returns. */
static Call* new_call(void* comm, void* stream, Terms terms) {
    Comm* c = comm;
    Call* call = calloc(1, sizeof *call);
    *call = (Call){.comm = c, .stream = npuport_stream(stream), .terms = terms};
    return call;
}

static uint64_t* kept(const uint64_t* values, uint32_t count) {
    uint64_t* copy = malloc(count * sizeof *copy);
    memcpy(copy, values, count * sizeof *copy);
    return copy;
}

static uint64_t* equal_counts(uint64_t count, uint32_t ranks) {
    uint64_t* counts = malloc(ranks * sizeof *counts);
    for (uint32_t rank = 0; rank < ranks; rank++) counts[rank] = count;
    return counts;
}

static uint64_t* offsets_of(const uint64_t* counts, uint32_t ranks) {
    uint64_t *offsets = malloc(ranks * sizeof *offsets), at = 0;
    for (uint32_t rank = 0; rank < ranks; rank++) offsets[rank] = at, at += counts[rank];
    return offsets;
}

static void free_call(Call* call) {
    free(call->sent), free(call->sent_at), free(call->received), free(call->received_at), free(call->batch);
    free(call);
}

static HcclResult check_terms(const Comm* comm, const Terms* terms) {
    const char* name = npuport_kind_name(terms->kind);
    if (!comm) return npuport_fail(HCCL_E_PTR, "%s: the communicator is null", name);
    if (terms->kind != BATCH_SEND_RECEIVE && !npuport_element_bytes(terms->type)) return npuport_fail(HCCL_E_NOT_SUPPORT, "EI0003: %s: data type %d is not known", name, terms->type);
    if (terms->root >= comm->ranks) return npuport_fail(HCCL_E_PARA, "EI0003: %s: rank %u of %u", name, terms->root, comm->ranks);
    if (terms->kind > REDUCE_SCATTER_V) return HCCL_SUCCESS;
    HcclResult error = npuport_combine(NULL, NULL, 0, terms->type, terms->operation);
    return error ? error : npuport_check_chip(name, terms->type, terms->operation);
}

/* Calls of one communicator run in the order in which they were made, which is the same on all ranks. */
static HcclResult await_turn(const Call* call) {
    npuport_lock();
    while (call->comm->done + 1 < call->number) npuport_wait_changed(0);
    npuport_unlock();
    Comm* comm = call->comm;
    if (comm->error) return npuport_fail(comm->error, "%s", comm->error_text);
    if (comm->closing) return npuport_fail(HCCL_E_UNAVAIL, "HCCL communicator %s was destroyed before %s", comm->name, npuport_kind_name(call->terms.kind));
    return HCCL_SUCCESS;
}

/* A communicator that has failed stays failed: its ranks no longer agree on where they are. */
static void keep_failure(Comm* comm, HcclResult error, const char* text) {
    if (comm->error) return;
    snprintf(comm->error_text, sizeof comm->error_text, "%s", text);
    comm->error = error;
    npuport_announce_failure(comm, text);
}

static HcclResult run_one(Call* call, char* text) {
    HcclResult error = await_turn(call);
    if (!error) error = npuport_perform(call);
    if (error) {
        snprintf(text, FAILURE_TEXT, "%s", aclGetRecentErrMsg());
        keep_failure(call->comm, error, text);
    }
    npuport_lock();
    call->comm->done = call->number;
    npuport_release_comm(call->comm);
    npuport_changed();
    npuport_unlock();
    return error;
}

static aclError run_calls(void* argument) {
    HcclResult first = HCCL_SUCCESS;
    char text[FAILURE_TEXT], first_text[FAILURE_TEXT];
    for (Call *call = argument, *next; call; call = next) {
        next = call->next;
        HcclResult error = run_one(call, text);
        if (error && !first) first = error, memcpy(first_text, text, sizeof text);
        free_call(call);
    }
    if (!first) return ACL_SUCCESS;
    return npuport_fail(first == HCCL_E_TIMEOUT ? ACL_ERROR_RT_INTERNAL_TASK_TIMEOUT : ACL_ERROR_RT_INTERNAL_TASK_EXCEPTION, "%s", first_text);
}

/* Calls of a group begin at its end, and then the order of its sends and receives must not matter: the sends, which wait for nobody, go
 * first. Their places in their streams they have from the start: what is put behind them meanwhile, such as an event, is behind them. */
typedef struct Lane { struct Lane* next; Stream* stream; Call *first, *last; bool open; } Lane; /* the calls of one stream */
static _Thread_local struct { int depth; Call *first, *last; Lane* lanes; } group;

static void append(Call** first, Call** last, Call* call) {
    call->next = NULL;
    if (*first) (*last)->next = call;
    else *first = call;
    *last = call;
}

static aclError run_lane(void* argument) {
    Lane* lane = argument;
    npuport_lock();
    while (!lane->open) npuport_wait_changed(0);
    Call* calls = lane->first;
    npuport_unlock();
    free(lane);
    return run_calls(calls);
}

static Lane* lane_of(const Stream* stream) {
    Lane* lane = group.lanes;
    while (lane && lane->stream != stream) lane = lane->next;
    return lane;
}

/* The stream waits for the end of a group of this very thread, which therefore must not wait for the stream. */
bool npuport_holds(const Stream* stream) { return lane_of(stream) != NULL; }

static void put_aside(Call* call) {
    append(&group.first, &group.last, call);
    if (lane_of(call->stream)) return;
    Lane* lane = calloc(1, sizeof *lane);
    *lane = (Lane){.next = group.lanes, .stream = call->stream};
    group.lanes = lane;
    npuport_submit(call->stream, run_lane, lane);
}

static void number(Call* call) { /* with the lock held */
    call->number = ++call->comm->issued;
    call->comm->references++;
}

static void submit_one(Call* call) {
    npuport_lock(); /* numbers and places in the streams in the same order */
    number(call);
    npuport_submit_locked(call->stream, run_calls, call);
    npuport_unlock();
}

static void distribute(bool sends) {
    Call *call = group.first, *next;
    for (group.first = group.last = NULL; call; call = next) {
        next = call->next;
        if (sends && call->terms.kind != SEND) {
            append(&group.first, &group.last, call);
            continue;
        }
        Lane* lane = lane_of(call->stream);
        append(&lane->first, &lane->last, call);
        number(call);
    }
}

static HcclResult submit(Call* call) {
    Comm* comm = call->comm;
    HcclResult error = HCCL_SUCCESS;
    if (comm->error) error = npuport_fail(comm->error, "%s", comm->error_text);
    else if (comm->suspended) error = npuport_fail(HCCL_E_SUSPENDING, "HCCL communicator %s is suspended", comm->name);
    if (error) free_call(call);
    else if (group.depth) put_aside(call);
    else submit_one(call);
    return error;
}

HcclResult HcclGroupStart(void) {
    group.depth++;
    return HCCL_SUCCESS;
}

HcclResult HcclGroupEnd(void) {
    if (group.depth == 0) return npuport_fail(HCCL_E_PARA, "HcclGroupEnd without HcclGroupStart");
    if (--group.depth) return HCCL_SUCCESS;
    npuport_lock();
    distribute(true);
    distribute(false);
    for (Lane *lane = group.lanes, *next; lane; lane = next) {
        next = lane->next; /* an open lane belongs to its stream */
        lane->open = true;
    }
    group.lanes = NULL;
    npuport_changed();
    npuport_unlock();
    return HCCL_SUCCESS;
}

HcclResult HcclBarrier(void* comm, void* stream) {
    Terms terms = {BARRIER, .type = INT8};
    HcclResult error = check_terms(comm, &terms);
    return error ? error : submit(new_call(comm, stream, terms));
}

HcclResult HcclAllReduce(const void* in, void* out, uint64_t count, int type, int operation, void* comm, void* stream) {
    Terms terms = {ALL_REDUCE, type, operation, 0, count};
    HcclResult error = check_terms(comm, &terms);
    if (error) return error;
    Call* call = new_call(comm, stream, terms);
    call->in = in, call->out = out;
    return submit(call);
}

HcclResult HcclReduce(const void* in, void* out, uint64_t count, int type, int operation, uint32_t root, void* comm, void* stream) {
    Terms terms = {REDUCE, type, operation, root, count};
    HcclResult error = check_terms(comm, &terms);
    if (error) return error;
    Call* call = new_call(comm, stream, terms);
    call->in = in, call->out = out;
    return submit(call);
}

HcclResult HcclReduceScatter(const void* in, void* out, uint64_t count, int type, int operation, void* comm, void* stream) {
    Terms terms = {REDUCE_SCATTER, type, operation, 0, count};
    HcclResult error = check_terms(comm, &terms);
    if (error) return error;
    Call* call = new_call(comm, stream, terms);
    call->in = in, call->out = out;
    call->sent = equal_counts(count, call->comm->ranks);
    call->sent_at = offsets_of(call->sent, call->comm->ranks);
    return submit(call);
}

HcclResult HcclReduceScatterV(const void* in, const uint64_t* counts, const uint64_t* offsets, void* out, uint64_t count, int type, int operation, void* comm, void* stream) {
    Terms terms = {REDUCE_SCATTER_V, type, operation, 0, 0};
    HcclResult error = check_terms(comm, &terms);
    const Comm* c = comm;
    if (!error && counts[c->rank] != count) error = npuport_fail(HCCL_E_PARA, "EI0003: HcclReduceScatterV: rank %u gets %llu elements of the counts and %llu of its own", c->rank, (unsigned long long)counts[c->rank], (unsigned long long)count);
    if (error) return error;
    Call* call = new_call(comm, stream, terms);
    call->in = in, call->out = out;
    call->sent = kept(counts, c->ranks);
    call->sent_at = kept(offsets, c->ranks);
    return submit(call);
}

HcclResult HcclAllGather(const void* in, void* out, uint64_t count, int type, void* comm, void* stream) {
    Terms terms = {ALL_GATHER, .type = type, .count = count};
    HcclResult error = check_terms(comm, &terms);
    if (error) return error;
    Call* call = new_call(comm, stream, terms);
    call->in = in, call->out = out, call->share = count;
    call->received = equal_counts(count, call->comm->ranks);
    call->received_at = offsets_of(call->received, call->comm->ranks);
    return submit(call);
}

HcclResult HcclAllGatherV(const void* in, uint64_t count, void* out, const uint64_t* counts, const uint64_t* offsets, int type, void* comm, void* stream) {
    Terms terms = {ALL_GATHER_V, .type = type};
    HcclResult error = check_terms(comm, &terms);
    if (error) return error;
    Call* call = new_call(comm, stream, terms);
    call->in = in, call->out = out, call->share = count;
    call->received = kept(counts, call->comm->ranks);
    call->received_at = kept(offsets, call->comm->ranks);
    return submit(call);
}

HcclResult HcclBroadcast(void* data, uint64_t count, int type, uint32_t root, void* comm, void* stream) {
    Terms terms = {BROADCAST, .type = type, .root = root, .count = count};
    HcclResult error = check_terms(comm, &terms);
    if (error) return error;
    Call* call = new_call(comm, stream, terms);
    call->in = data, call->out = data;
    return submit(call);
}

HcclResult HcclScatter(const void* in, void* out, uint64_t count, int type, uint32_t root, void* comm, void* stream) {
    Terms terms = {SCATTER, .type = type, .root = root, .count = count};
    HcclResult error = check_terms(comm, &terms);
    if (error) return error;
    Call* call = new_call(comm, stream, terms);
    call->in = in, call->out = out;
    return submit(call);
}

HcclResult HcclSend(const void* data, uint64_t count, int type, uint32_t to, void* comm, void* stream) {
    Terms terms = {SEND, .type = type, .root = to, .count = count};
    HcclResult error = check_terms(comm, &terms);
    if (error) return error;
    Call* call = new_call(comm, stream, terms);
    call->in = data;
    return submit(call);
}

HcclResult HcclRecv(void* data, uint64_t count, int type, uint32_t from, void* comm, void* stream) {
    Terms terms = {RECEIVE, .type = type, .root = from, .count = count};
    HcclResult error = check_terms(comm, &terms);
    if (error) return error;
    Call* call = new_call(comm, stream, terms);
    call->out = data;
    return submit(call);
}

HcclResult HcclBatchSendRecv(const SendReceive* items, uint32_t count, void* comm, void* stream) {
    Terms terms = {BATCH_SEND_RECEIVE, .count = count};
    HcclResult error = check_terms(comm, &terms);
    for (uint32_t i = 0; i < count && !error; i++) error = check_terms(comm, &(Terms){items[i].kind ? RECEIVE : SEND, .type = items[i].type, .root = items[i].remote});
    if (error) return error;
    Call* call = new_call(comm, stream, terms);
    call->items = count;
    call->batch = malloc(count * sizeof *items);
    memcpy(call->batch, items, count * sizeof *items);
    return submit(call);
}

HcclResult HcclAlltoAllV(const void* in, const uint64_t* send_counts, const uint64_t* send_offsets, int send_type, void* out,
                         const uint64_t* receive_counts, const uint64_t* receive_offsets, int receive_type, void* comm, void* stream) {
    Terms terms = {ALL_TO_ALL, .type = send_type};
    HcclResult error = check_terms(comm, &terms);
    if (!error) error = check_terms(comm, &(Terms){ALL_TO_ALL, .type = receive_type});
    if (error) return error;
    Call* call = new_call(comm, stream, terms);
    uint32_t ranks = call->comm->ranks;
    call->in = in, call->out = out, call->received_type = receive_type;
    call->sent = kept(send_counts, ranks), call->sent_at = kept(send_offsets, ranks);
    call->received = kept(receive_counts, ranks), call->received_at = kept(receive_offsets, ranks);
    return submit(call);
}

HcclResult HcclAlltoAll(const void* in, uint64_t send_count, int send_type, void* out, uint64_t receive_count, int receive_type, void* comm, void* stream) {
    uint64_t sent[MAX_RANKS], from[MAX_RANKS], received[MAX_RANKS], to[MAX_RANKS];
    for (uint32_t rank = 0; rank < MAX_RANKS; rank++) {
        sent[rank] = send_count, from[rank] = rank * send_count;
        received[rank] = receive_count, to[rank] = rank * receive_count;
    }
    return HcclAlltoAllV(in, sent, from, send_type, out, received, to, receive_type, comm, stream);
}

/* One matrix says for every pair of ranks how much goes from the row to the column. */
HcclResult HcclAlltoAllVC(const void* in, const uint64_t* matrix, int send_type, void* out, int receive_type, void* comm, void* stream) {
    const Comm* c = comm;
    uint64_t sent[MAX_RANKS], from[MAX_RANKS], received[MAX_RANKS], to[MAX_RANKS], out_at = 0, in_at = 0;
    for (uint32_t rank = 0; c && rank < c->ranks; rank++) {
        sent[rank] = matrix[c->rank * c->ranks + rank], from[rank] = in_at, in_at += sent[rank];
        received[rank] = matrix[rank * c->ranks + c->rank], to[rank] = out_at, out_at += received[rank];
    }
    return HcclAlltoAllV(in, sent, from, send_type, out, received, to, receive_type, comm, stream);
}

/* The calls themselves. Each blocks its stream's thread until the part of this rank is done. */
#include "hccl.h"

const char* npuport_kind_name(Kind kind) {
    switch (kind) {
        case ALL_REDUCE: return "HcclAllReduce";
        case REDUCE: return "HcclReduce";
        case REDUCE_SCATTER: return "HcclReduceScatter";
        case REDUCE_SCATTER_V: return "HcclReduceScatterV";
        case ALL_GATHER: return "HcclAllGather";
        case ALL_GATHER_V: return "HcclAllGatherV";
        case BROADCAST: return "HcclBroadcast";
        case BARRIER: return "HcclBarrier";
        case SCATTER: return "HcclScatter";
        case SEND: return "HcclSend";
        case RECEIVE: return "HcclRecv";
        case ALL_TO_ALL: return "HcclAlltoAllV";
        case BATCH_SEND_RECEIVE: return "HcclBatchSendRecv";
    }
    return "?";
}

static HcclResult check_terms(const Comm* comm) {
    const Terms* terms = comm->segment->terms[comm->phase];
    for (uint32_t rank = 1; rank < comm->ranks; rank++) {
        const Terms *a = &terms[0], *b = &terms[rank];
        if (!memcmp(a, b, sizeof *a)) continue;
        return npuport_fail(HCCL_E_PARA,
                            "EI0005: the ranks of HCCL communicator %s disagree: rank 0 calls %s (count %llu, data type %d, reduction %d, root %u), "
                            "rank %u calls %s (count %llu, data type %d, reduction %d, root %u)",
                            comm->name, npuport_kind_name(a->kind), (unsigned long long)a->count, a->type, a->operation, a->root, rank,
                            npuport_kind_name(b->kind), (unsigned long long)b->count, b->type, b->operation, b->root);
    }
    return HCCL_SUCCESS;
}

/* All ranks show their elements, a slot's length at a time; `take` sees the slots while nobody changes them: the next length goes to the
 * other slot, and nobody writes the one after it before all have taken this one. */
typedef HcclResult Take(Call* call, size_t from, size_t count, size_t width);

static HcclResult exchange(Call* call, size_t mine, size_t longest, Take* take) {
    Comm* comm = call->comm;
    size_t width = npuport_element_bytes(call->terms.type), step = SLOT_BYTES / width;
    for (size_t from = 0; from == 0 || from < longest; from += step) {
        size_t shown = from >= mine ? 0 : mine - from < step ? mine - from : step;
        if (shown) memcpy(npuport_slot(comm, comm->rank), (const char*)call->in + from * width, shown * width);
        comm->segment->terms[comm->phase][comm->rank] = call->terms;
        HcclResult error = npuport_barrier(comm);
        if (!error) error = check_terms(comm);
        if (!error && longest) error = take(call, from, longest - from < step ? longest - from : step, width);
        if (error) return error;
        comm->phase ^= 1;
    }
    return HCCL_SUCCESS;
}

/* Of the elements [begin, end) of all, this rank takes those in [from, from + count). */
static HcclResult reduce_range(Call* call, size_t begin, size_t end, size_t from, size_t count, size_t width) {
    Comm* comm = call->comm;
    size_t first = from > begin ? from : begin, last = from + count < end ? from + count : end;
    if (first >= last) return HCCL_SUCCESS;
    char* to = (char*)call->out + (first - begin) * width;
    size_t skip = (first - from) * width;
    memcpy(to, npuport_slot(comm, 0) + skip, (last - first) * width);
    for (uint32_t rank = 1; rank < comm->ranks; rank++) {
        HcclResult error = npuport_combine(to, npuport_slot(comm, rank) + skip, last - first, call->terms.type, call->terms.operation);
        if (error) return error;
    }
    return HCCL_SUCCESS;
}

static HcclResult take_reduced(Call* call, size_t from, size_t count, size_t width) {
    bool wanted = call->terms.kind == ALL_REDUCE || call->comm->rank == call->terms.root;
    return wanted ? reduce_range(call, 0, call->terms.count, from, count, width) : HCCL_SUCCESS;
}

static HcclResult take_share(Call* call, size_t from, size_t count, size_t width) {
    size_t begin = call->sent_at[call->comm->rank];
    return reduce_range(call, begin, begin + call->sent[call->comm->rank], from, count, width);
}

static HcclResult take_gathered(Call* call, size_t from, size_t count, size_t width) {
    for (uint32_t rank = 0; rank < call->comm->ranks; rank++) {
        size_t length = call->received[rank], there = length <= from ? 0 : length - from < count ? length - from : count;
        if (there) memcpy((char*)call->out + (call->received_at[rank] + from) * width, npuport_slot(call->comm, rank), there * width);
    }
    return HCCL_SUCCESS;
}

static HcclResult take_from_root(Call* call, size_t from, size_t count, size_t width) {
    if (call->comm->rank != call->terms.root) memcpy((char*)call->out + from * width, npuport_slot(call->comm, call->terms.root), count * width);
    return HCCL_SUCCESS;
}

static size_t farthest(const Comm* comm, const uint64_t* counts, const uint64_t* offsets) {
    size_t end = 0;
    for (uint32_t rank = 0; rank < comm->ranks; rank++)
        if (counts[rank] + (offsets ? offsets[rank] : 0) > end) end = counts[rank] + (offsets ? offsets[rank] : 0);
    return end;
}

static HcclResult scatter(Call* call) {
    Comm* comm = call->comm;
    size_t bytes = call->terms.count * npuport_element_bytes(call->terms.type);
    if (comm->rank != call->terms.root) return npuport_receive(comm, call->out, bytes, call->terms.root);
    HcclResult error = HCCL_SUCCESS;
    for (uint32_t rank = 0; rank < comm->ranks && !error; rank++) {
        const char* share = (const char*)call->in + rank * bytes;
        if (rank != comm->rank) error = npuport_send(comm, share, bytes, rank);
        else if (bytes) memmove(call->out, share, bytes);
    }
    return error;
}

static HcclResult all_to_all(Call* call) {
    Comm* comm = call->comm;
    size_t in_width = npuport_element_bytes(call->terms.type), out_width = npuport_element_bytes(call->received_type);
    HcclResult error = HCCL_SUCCESS;
    for (uint32_t rank = 0; rank < comm->ranks && !error; rank++)
        error = npuport_send(comm, (const char*)call->in + call->sent_at[rank] * in_width, call->sent[rank] * in_width, rank);
    for (uint32_t rank = 0; rank < comm->ranks && !error; rank++)
        error = npuport_receive(comm, (char*)call->out + call->received_at[rank] * out_width, call->received[rank] * out_width, rank);
    return error;
}

static HcclResult batch(Call* call) {
    HcclResult error = HCCL_SUCCESS;
    for (int kind = 0; kind < 2; kind++) /* sends do not wait, so all of them go first */
        for (uint32_t i = 0; i < call->items && !error; i++) {
            const SendReceive* item = &call->batch[i];
            if (item->kind != kind) continue;
            size_t bytes = item->count * npuport_element_bytes(item->type);
            error = kind == 0 ? npuport_send(call->comm, item->data, bytes, item->remote) : npuport_receive(call->comm, item->data, bytes, item->remote);
        }
    return error;
}

HcclResult npuport_perform(Call* call) {
    const Comm* comm = call->comm;
    const Terms* terms = &call->terms;
    size_t bytes = terms->count * npuport_element_bytes(terms->type);
    switch ((Kind)terms->kind) {
        case ALL_REDUCE:
        case REDUCE: return exchange(call, terms->count, terms->count, take_reduced);
        case REDUCE_SCATTER:
        case REDUCE_SCATTER_V: return exchange(call, farthest(comm, call->sent, call->sent_at), farthest(comm, call->sent, call->sent_at), take_share);
        case ALL_GATHER:
        case ALL_GATHER_V: return exchange(call, call->share, farthest(comm, call->received, NULL), take_gathered);
        case BROADCAST: return exchange(call, comm->rank == terms->root ? terms->count : 0, terms->count, take_from_root);
        case BARRIER: return exchange(call, 0, 0, NULL);
        case SCATTER: return scatter(call);
        case SEND: return npuport_send(call->comm, call->in, bytes, terms->root);
        case RECEIVE: return npuport_receive(call->comm, call->out, bytes, terms->root);
        case ALL_TO_ALL: return all_to_all(call);
        case BATCH_SEND_RECEIVE: return batch(call);
    }
    return HCCL_E_INTERNAL;
}

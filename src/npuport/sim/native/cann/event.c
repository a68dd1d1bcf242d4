/* Events: a mark in a stream. One that is recorded behind a communication is complete when that is; its failure goes on to who waits for it. */
#include "queue.h"

typedef struct {
    uint64_t recorded, completed; /* how often; complete when they are equal */
    double time_ms;               /* of the last completion */
    Failure failure;              /* of what came before it in its stream */
    uint32_t references;          /* the owner's and one of each task */
} Event;

typedef struct { Event* event; Stream* stream; uint64_t number; } Mark;

static Mark* mark(Event* event, Stream* stream) {
    Mark* made = malloc(sizeof *made);
    *made = (Mark){event, stream, event->recorded};
    event->references++;
    return made;
}

static void release(Event* event) {
    if (--event->references == 0) free(event);
}

aclError aclrtCreateEventWithFlag(void** handle, uint32_t flag) {
    (void)flag;
    Event* event = calloc(1, sizeof *event);
    event->references = 1;
    *handle = event;
    return ACL_SUCCESS;
}

aclError aclrtCreateEventExWithFlag(void** handle, uint32_t flag) { return aclrtCreateEventWithFlag(handle, flag); }

aclError aclrtDestroyEvent(void* handle) {
    npuport_lock();
    release(handle);
    npuport_unlock();
    return ACL_SUCCESS;
}

static void complete(Event* event, const Stream* stream, uint64_t number) {
    event->time_ms = npuport_now_ms();
    event->failure = stream->failure;
    event->completed = number;
    npuport_changed();
}

static aclError run_record(void* argument) {
    Mark record = *(Mark*)argument;
    free(argument);
    npuport_lock();
    if (record.number > record.event->completed) complete(record.event, record.stream, record.number);
    release(record.event);
    npuport_unlock();
    return ACL_SUCCESS;
}

aclError aclrtRecordEvent(void* handle, void* stream_handle) {
    Event* event = handle;
    Stream* stream = npuport_stream(stream_handle);
    npuport_lock();
    event->recorded++;
    if (npuport_is_idle(stream)) complete(event, stream, event->recorded);
    else npuport_submit_locked(stream, run_record, mark(event, stream));
    npuport_unlock();
    return ACL_SUCCESS;
}

static bool is_complete(const Event* event) { return event->completed >= event->recorded; }

static aclError run_wait(void* argument) {
    Mark wait = *(Mark*)argument;
    free(argument);
    npuport_lock();
    while (wait.event->completed < wait.number) npuport_wait_changed(0);
    npuport_fail_stream(wait.stream, &wait.event->failure);
    release(wait.event);
    npuport_unlock();
    return ACL_SUCCESS;
}

aclError aclrtStreamWaitEvent(void* stream_handle, void* handle) {
    Event* event = handle;
    Stream* stream = npuport_stream(stream_handle);
    npuport_lock();
    if (!is_complete(event)) npuport_submit_locked(stream, run_wait, mark(event, stream));
    else if (event->failure.code) npuport_fail_stream(stream, &event->failure);
    npuport_unlock();
    return ACL_SUCCESS;
}

aclError aclrtResetEvent(void* handle, void* stream) {
    (void)handle, (void)stream; /* the next record counts, whatever was recorded before */
    return ACL_SUCCESS;
}

static aclError told(const Failure* failure) { return failure->code ? npuport_fail(failure->code, "%s", failure->text) : ACL_SUCCESS; }

static bool is_done(Event* event, Failure* failure) {
    npuport_lock();
    bool done = is_complete(event);
    *failure = done ? event->failure : (Failure){0};
    npuport_unlock();
    return done;
}

aclError aclrtQueryEventStatus(void* handle, int* status) {
    Failure failure;
    *status = is_done(handle, &failure) ? 1 : 0; /* complete, not ready */
    return told(&failure);
}

aclError aclrtQueryEventWaitStatus(void* handle, int* status) {
    Failure failure;
    *status = is_done(handle, &failure) ? 0 : 1; /* complete, not ready */
    return told(&failure);
}

aclError aclrtSynchronizeEventWithTimeout(void* handle, int32_t timeout_ms) {
    npuport_waits("aclrtSynchronizeEvent");
    Event* event = handle;
    double until = timeout_ms < 0 ? 0 : npuport_now_ms() + timeout_ms;
    npuport_lock();
    bool in_time = true;
    while (!is_complete(event) && in_time) in_time = npuport_wait_changed(until);
    in_time = is_complete(event);
    Failure failure = in_time ? event->failure : (Failure){0};
    npuport_unlock();
    return in_time ? told(&failure) : npuport_fail(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "the event is still waiting for a communication");
}

aclError aclrtSynchronizeEvent(void* handle) { return aclrtSynchronizeEventWithTimeout(handle, -1); }

/* The host's clock: how long the simulation took, not how long an NPU would take. */
aclError aclrtEventElapsedTime(float* milliseconds, void* from, void* to) {
    const Event *start = from, *end = to;
    if (!start->completed || !end->completed)
        return npuport_fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "aclrtEventElapsedTime: both events must be recorded first");
    *milliseconds = (float)(end->time_ms - start->time_ms);
    return ACL_SUCCESS;
}

aclError aclrtEventGetTimestamp(void* handle, uint64_t* microseconds) {
    const Event* event = handle;
    if (!event->completed) return npuport_fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "the event is not recorded");
    *microseconds = (uint64_t)(event->time_ms * 1e3);
    return ACL_SUCCESS;
}

/* An event of another process. What it stands for is done before the handle is given away; what is recorded later is done when it is
 * recorded, but for communication, which the other process does not see. */
typedef struct { char reserved[64]; } IpcEventHandle;

aclError aclrtIpcGetEventHandle(void* handle, IpcEventHandle* shared) {
    aclError error = aclrtSynchronizeEvent(handle);
    memset(shared, 0, sizeof *shared);
    memcpy(shared->reserved, &((const Event*)handle)->time_ms, sizeof(double));
    return error;
}

aclError aclrtIpcOpenEventHandle(IpcEventHandle shared, void** handle) {
    Event* event = calloc(1, sizeof *event);
    event->references = event->recorded = event->completed = 1;
    memcpy(&event->time_ms, shared.reserved, sizeof(double));
    *handle = event;
    return ACL_SUCCESS;
}

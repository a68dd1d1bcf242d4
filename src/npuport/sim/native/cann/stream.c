/* Streams and events. Work is done when it is submitted, so a stream is always idle and an event is complete once it is recorded. */
#include "stand_in.h"

#include <stdatomic.h>
#include <time.h>

typedef struct { int32_t id; uint32_t overflow_switch; } Stream;
typedef struct { double recorded_ms; bool recorded; } Event;

static _Atomic int32_t next_stream_id = 1;
static Stream default_stream;

static Stream* stream_of(void* handle) { return handle ? handle : &default_stream; }

aclError aclrtCreateStream(void** handle) {
    Stream* stream = calloc(1, sizeof *stream);
    stream->id = next_stream_id++;
    *handle = stream;
    return ACL_SUCCESS;
}

aclError aclrtCreateStreamWithConfig(void** handle, uint32_t priority, uint32_t flag) {
    (void)priority, (void)flag;
    return aclrtCreateStream(handle);
}

aclError aclrtDestroyStream(void* handle) {
    free(handle);
    return ACL_SUCCESS;
}

aclError aclrtDestroyStreamForce(void* handle) { return aclrtDestroyStream(handle); }

aclError aclrtStreamGetId(void* handle, int32_t* id) {
    *id = stream_of(handle)->id;
    return ACL_SUCCESS;
}

aclError aclrtStreamQuery(void* handle, int* status) {
    (void)handle;
    *status = 0; /* complete */
    return ACL_SUCCESS;
}

aclError aclrtSynchronizeStream(void* handle) {
    (void)handle;
    return ACL_SUCCESS;
}

aclError aclrtSynchronizeStreamWithTimeout(void* handle, int32_t timeout) {
    (void)timeout;
    return aclrtSynchronizeStream(handle);
}

aclError aclrtSetStreamFailureMode(void* handle, uint64_t mode) {
    (void)handle, (void)mode; /* what a stream does after a failed task: no task fails after it was accepted */
    return ACL_SUCCESS;
}

aclError aclrtSetStreamOverflowSwitch(void* handle, uint32_t flag) {
    stream_of(handle)->overflow_switch = flag;
    return ACL_SUCCESS;
}

aclError aclrtGetStreamOverflowSwitch(void* handle, uint32_t* flag) {
    *flag = stream_of(handle)->overflow_switch;
    return ACL_SUCCESS;
}

aclError aclrtCreateEventWithFlag(void** handle, uint32_t flag) {
    (void)flag;
    *handle = calloc(1, sizeof(Event));
    return ACL_SUCCESS;
}

aclError aclrtCreateEventExWithFlag(void** handle, uint32_t flag) { return aclrtCreateEventWithFlag(handle, flag); }

aclError aclrtDestroyEvent(void* handle) {
    free(handle);
    return ACL_SUCCESS;
}

aclError aclrtRecordEvent(void* handle, void* stream) {
    (void)stream;
    Event* event = handle;
    event->recorded_ms = npuport_now_ms();
    event->recorded = true;
    return ACL_SUCCESS;
}

aclError aclrtResetEvent(void* handle, void* stream) {
    (void)handle, (void)stream; /* resetting after a wait keeps the record: nothing can still be waiting */
    return ACL_SUCCESS;
}

aclError aclrtQueryEventStatus(void* handle, int* status) {
    (void)handle;
    *status = 1; /* complete */
    return ACL_SUCCESS;
}

aclError aclrtQueryEventWaitStatus(void* handle, int* status) {
    (void)handle;
    *status = 0; /* complete */
    return ACL_SUCCESS;
}

aclError aclrtStreamWaitEvent(void* stream, void* handle) {
    (void)stream, (void)handle;
    return ACL_SUCCESS;
}

aclError aclrtSynchronizeEvent(void* handle) {
    (void)handle;
    return ACL_SUCCESS;
}

/* The host's clock: how long the simulation took, not how long an NPU would take. */
aclError aclrtEventElapsedTime(float* milliseconds, void* from, void* to) {
    const Event *start = from, *end = to;
    if (!start->recorded || !end->recorded)
        return npuport_fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "aclrtEventElapsedTime: both events must be recorded first");
    *milliseconds = (float)(end->recorded_ms - start->recorded_ms);
    return ACL_SUCCESS;
}

aclError aclrtEventGetTimestamp(void* handle, uint64_t* microseconds) {
    const Event* event = handle;
    if (!event->recorded) return npuport_fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "the event is not recorded");
    *microseconds = (uint64_t)(event->recorded_ms * 1e3);
    return ACL_SUCCESS;
}

/* Host functions in a stream run at once. */
aclError aclrtLaunchHostFunc(void* stream, void (*function)(void*), void* arguments) {
    (void)stream;
    function(arguments);
    return ACL_SUCCESS;
}

aclError aclrtLaunchCallback(void (*function)(void*), void* data, int blocking, void* stream) {
    (void)blocking;
    return aclrtLaunchHostFunc(stream, function, data);
}

aclError aclrtSubscribeReport(uint64_t thread, void* stream) {
    (void)thread, (void)stream;
    return ACL_SUCCESS;
}

aclError aclrtUnSubscribeReport(uint64_t thread, void* stream) {
    (void)thread, (void)stream;
    return ACL_SUCCESS;
}

/* torch_npu's callback thread calls this in a loop; without the pause it would spin. */
aclError aclrtProcessReport(int32_t timeout_ms) {
    struct timespec pause = {timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000L};
    if (timeout_ms > 0) nanosleep(&pause, NULL);
    return ACL_SUCCESS;
}

aclError aclmdlRICaptureGetInfo(void* stream, int* status, void** model) {
    (void)stream;
    *status = 0; /* not capturing */
    if (model) *model = NULL;
    return ACL_SUCCESS;
}

/* Streams: what torch_npu may ask of them. How they work is in queue.c. */
#include "queue.h"

#include <time.h>

aclError aclrtCreateStream(void** handle) {
    *handle = npuport_new_stream();
    return ACL_SUCCESS;
}

aclError aclrtCreateStreamWithConfig(void** handle, uint32_t priority, uint32_t flag) {
    (void)priority, (void)flag;
    return aclrtCreateStream(handle);
}

aclError aclrtDestroyStream(void* handle) {
    npuport_delete_stream(handle);
    return ACL_SUCCESS;
}

aclError aclrtDestroyStreamForce(void* handle) { return aclrtDestroyStream(handle); }

aclError aclrtStreamGetId(void* handle, int32_t* id) {
    *id = npuport_stream(handle)->id;
    return ACL_SUCCESS;
}

aclError aclrtStreamQuery(void* handle, int* status) {
    npuport_lock();
    *status = npuport_is_idle(npuport_stream(handle)) ? 0 : 1; /* complete, not ready */
    npuport_unlock();
    return ACL_SUCCESS;
}

aclError aclrtSynchronizeStreamWithTimeout(void* handle, int32_t timeout_ms) {
    npuport_waits("aclrtSynchronizeStream");
    return npuport_drain(npuport_stream(handle), timeout_ms);
}

aclError aclrtSynchronizeStream(void* handle) { return aclrtSynchronizeStreamWithTimeout(handle, -1); }

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout_ms) {
    npuport_waits("aclrtSynchronizeDevice");
    return npuport_drain_device(npuport_current_device(), timeout_ms);
}

aclError aclrtSynchronizeDevice(void) { return aclrtSynchronizeDeviceWithTimeout(-1); }

aclError aclrtSetStreamFailureMode(void* handle, uint64_t mode) {
    (void)handle, (void)mode; /* what a stream does after a failed task: here the tasks after it are done in any case */
    return ACL_SUCCESS;
}

aclError aclrtSetStreamOverflowSwitch(void* handle, uint32_t flag) {
    npuport_stream(handle)->overflow_switch = flag;
    return ACL_SUCCESS;
}

aclError aclrtGetStreamOverflowSwitch(void* handle, uint32_t* flag) {
    *flag = npuport_stream(handle)->overflow_switch;
    return ACL_SUCCESS;
}

typedef struct { void (*function)(void*); void* arguments; } HostCall;

static aclError call_host(void* argument) {
    HostCall call = *(HostCall*)argument;
    free(argument);
    call.function(call.arguments);
    return ACL_SUCCESS;
}

aclError aclrtLaunchHostFunc(void* stream, void (*function)(void*), void* arguments) {
    HostCall* call = malloc(sizeof *call);
    *call = (HostCall){function, arguments};
    return npuport_follow(npuport_stream(stream), call_host, call);
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

/* Failure mode, overflow check, a tag: nothing that changes a result here. */
aclError aclrtSetStreamAttribute(void* stream, int attribute, const void* value) {
    (void)stream, (void)attribute, (void)value;
    return ACL_SUCCESS;
}

/* Graphs: operators run above CANN, so that there would be nothing in a graph. */
aclError aclmdlRICaptureBegin(void* stream, int mode) {
    (void)stream, (void)mode;
    return npuport_fail(ACL_ERROR_FEATURE_UNSUPPORTED, "the simulated NPU captures no graph (torch.npu.graph, NPUGraph): run this part without one");
}

aclError aclmdlRICaptureGetInfo(void* stream, int* status, void** model) {
    (void)stream;
    *status = 0; /* not capturing */
    if (model) *model = NULL;
    return ACL_SUCCESS;
}

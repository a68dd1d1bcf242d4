/* libmspti, which torch_npu's activity tracer (behind torch.profiler) subscribes to: nothing runs on a device, so it never gets a record. */
#include "stand_in.h"

static int subscriber;
static bool enabled[64];

int msptiSubscribe(void** handle, void* callback, void* data) {
    (void)callback, (void)data;
    *handle = &subscriber;
    return 0;
}

int msptiUnsubscribe(void* handle) { return (void)handle, 0; }
int msptiActivityRegisterCallbacks(void* request, void* complete) { return (void)request, (void)complete, 0; }

int msptiActivityEnable(int kind) {
    if (kind < 0 || kind >= 64) return 1;
    enabled[kind] = true;
    return 0;
}

int msptiActivityDisable(int kind) {
    if (kind < 0 || kind >= 64) return 1;
    enabled[kind] = false;
    return 0;
}

bool msptiActivityIsEnabled(int kind) { return kind >= 0 && kind < 64 && enabled[kind]; }
int msptiActivityFlushAll(uint32_t flag) { return (void)flag, 0; }
int msptiActivityPushExternalCorrelationId(int kind, uint64_t id) { return (void)kind, (void)id, 0; }

int msptiActivityPopExternalCorrelationId(int kind, uint64_t* last) {
    (void)kind;
    if (last) *last = 0;
    return 0;
}

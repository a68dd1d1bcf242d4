/* Error text. CANN keeps the text of the last error per thread; torch_npu appends it to what it raises. */
#include "stand_in.h"

#include <stdarg.h>

static _Thread_local char message[1024];
static _Thread_local char handed_out[1024];
static _Thread_local aclError last_error;

aclError npuport_fail(aclError code, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    last_error = code;
    return code;
}

aclError npuport_no_reference(const char* operator_name) {
    return npuport_fail(ACL_ERROR_FEATURE_UNSUPPORTED, "npuport simulated NPU has no reference for %s", operator_name);
}

aclError npuport_not_simulated(const char* function) {
    return npuport_fail(ACL_ERROR_FEATURE_UNSUPPORTED, "npuport simulated NPU does not simulate %s", function);
}

void npuport_abort(const char* function) {
    fprintf(stderr, "npuport simulated NPU does not simulate %s (graph mode)\n", function);
    abort();
}

/* Reading the text clears it, as in CANN. */
const char* aclGetRecentErrMsg(void) {
    memcpy(handed_out, message, sizeof handed_out);
    message[0] = '\0';
    return handed_out;
}

aclError aclrtPeekAtLastError(int level) {
    (void)level;
    return last_error;
}

aclError aclrtGetLastError(int level) {
    aclError code = aclrtPeekAtLastError(level);
    last_error = ACL_SUCCESS;
    return code;
}

void aclAppLog(int level, const char* function, const char* file, uint32_t line, const char* format, ...) {
    (void)level, (void)function, (void)file, (void)line, (void)format; /* CANN logs to its own files; there are none here */
}

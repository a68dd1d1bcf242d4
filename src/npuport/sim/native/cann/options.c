/* Settings: kept and given back, because torch_npu reads some of them again. None changes what the simulation computes. */
#include "stand_in.h"

enum { SETTINGS = 64, TEXT = 256 };
static int64_t parameters[SETTINGS];
static char compile_options[SETTINGS][TEXT];

aclError aclrtSetSysParamOpt(int option, int64_t value) {
    if (option < 0 || option >= SETTINGS) return npuport_fail(ACL_ERROR_INVALID_PARAM, "unknown system parameter %d", option);
    parameters[option] = value;
    return ACL_SUCCESS;
}

aclError aclrtGetSysParamOpt(int option, int64_t* value) {
    if (option < 0 || option >= SETTINGS) return npuport_fail(ACL_ERROR_INVALID_PARAM, "unknown system parameter %d", option);
    *value = parameters[option];
    return ACL_SUCCESS;
}

aclError aclrtCtxSetSysParamOpt(int option, int64_t value) { return aclrtSetSysParamOpt(option, value); }
aclError aclrtCtxGetSysParamOpt(int option, int64_t* value) { return aclrtGetSysParamOpt(option, value); }

aclError aclSetCompileopt(int option, const char* value) {
    if (option < 0 || option >= SETTINGS) return npuport_fail(ACL_ERROR_INVALID_PARAM, "unknown compile option %d", option);
    snprintf(compile_options[option], TEXT, "%s", value);
    return ACL_SUCCESS;
}

size_t aclGetCompileoptSize(int option) {
    return option < 0 || option >= SETTINGS ? 0 : strlen(compile_options[option]) + 1;
}

aclError aclGetCompileopt(int option, char* value, size_t room) {
    if (option < 0 || option >= SETTINGS || room == 0) return npuport_fail(ACL_ERROR_INVALID_PARAM, "unknown compile option %d", option);
    snprintf(value, room, "%s", compile_options[option]);
    return ACL_SUCCESS;
}

aclError aclrtSetDeviceSatMode(int mode) {
    (void)mode; /* the kernels ask torch_npu for it */
    return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOut(uint32_t seconds) {
    (void)seconds;
    return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOutV2(uint64_t microseconds, uint64_t* actual) {
    *actual = microseconds;
    return ACL_SUCCESS;
}

aclError aclrtSetOpWaitTimeout(uint32_t seconds) {
    (void)seconds;
    return ACL_SUCCESS;
}

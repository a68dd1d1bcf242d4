// Operators compute when they are called. What comes before them in their stream and takes time, communication, must be over by then.
#pragma once

#include <c10/core/Device.h>

namespace npuport {

// Raises what went wrong in the stream before.
void wait_for_current_stream(c10::DeviceIndex device);

}  // namespace npuport

#include "posenc/version.h"

namespace posenc {

const char* version() { return POSENC_VERSION; }

}  // namespace posenc

#pragma once

// What a search found, in words.

#include "posenc/sinusoid/identify.h"
#include "sinusoid/identify/search.h"

namespace posenc::identification {

Identification report(const Finding& finding);

}  // namespace posenc::identification

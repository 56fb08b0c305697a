#pragma once

// The component posenc::catalogue. identify(), and published relative positions.

#include "posenc/catalogue/identify.h"
#include "posenc/catalogue/relative_preset.h"

#pragma once
// The header's name until 0.3.
#include "posenc/weights/load.h"

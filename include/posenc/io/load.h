#pragma once
// The header's name until 0.2.
#include "posenc/weights/load.h"

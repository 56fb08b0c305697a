#pragma once
// The header's name until 0.3.
#include "posenc/tokenizers/tensors.h"

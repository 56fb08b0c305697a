#pragma once

// The component posenc::tokenizers. Text to ids and back, without LibTorch.

#include "posenc/tokenizers/encoded_batch.h"
#include "posenc/tokenizers/error.h"
#include "posenc/tokenizers/tokenizer.h"
#include "posenc/tokenizers/tokenizer_options.h"

#pragma once

// All components of this posenc, except for what few programs need:
// <posenc/models/inspect_folder.h>, which finds the weights in a folder of Hugging Face,
// <posenc/positions/nn/table_module.h> and <posenc/train/checkpointable.h>, which are for classes
// of your own, and <posenc/train/gloo.h>, for groups of processes. This header does not replace
// <torch/torch.h>: from LibTorch it includes only tensors and what posenc's own classes need.
// Include losses (<torch/nn/functional/loss.h>), other layers and LibTorch's optimisers
// (<torch/optim/adam.h>) yourself.

#if __has_include("posenc/catalogue.h")
#include "posenc/catalogue.h"
#endif
#if __has_include("posenc/inference.h")
#include "posenc/inference.h"
#endif
#if __has_include("posenc/models.h")
#include "posenc/models.h"
#endif
#if __has_include("posenc/positions.h")
#include "posenc/positions.h"
#endif
#if __has_include("posenc/speech.h")
#include "posenc/speech.h"
#endif
#if __has_include("posenc/text.h")
#include "posenc/text.h"
#endif
#if __has_include("posenc/tokenizers.h")
#include "posenc/tokenizers.h"
#endif
#if __has_include("posenc/train.h")
#include "posenc/train.h"
#endif
#if __has_include("posenc/transformer.h")
#include "posenc/transformer.h"
#endif
#if __has_include("posenc/weights.h")
#include "posenc/weights.h"
#endif

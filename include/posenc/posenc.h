#pragma once

/// Everything: token ids to the input of a Transformer's first layer, and the weights into it.

#include "posenc/core/scale.h"
#include "posenc/functional/embed.h"
#include "posenc/functional/pad_sequences.h"
#include "posenc/functional/positional_encoding.h"
#include "posenc/functional/timestep_embedding.h"
#include "posenc/functional/token_embedding.h"
#include "posenc/io/load.h"
#include "posenc/io/safetensors.h"
#include "posenc/io/state_dict.h"
#include "posenc/io/torchscript.h"
#include "posenc/nn/input_embedding.h"
#include "posenc/nn/position_embedding.h"
#include "posenc/nn/positional_encoding.h"
#include "posenc/nn/timestep_embedding.h"
#include "posenc/nn/token_and_position_embedding.h"
#include "posenc/nn/token_embedding.h"
#include "posenc/sinusoid/axes.h"
#include "posenc/sinusoid/options.h"
#include "posenc/sinusoid/preset.h"
#include "posenc/sinusoid/table.h"

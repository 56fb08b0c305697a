#pragma once

// The component posenc::weights. Weights in and out: torch.save, TorchScript, .pt2 and safetensors,
// key maps, golden files.

#include "posenc/weights/error.h"
#include "posenc/weights/golden.h"
#include "posenc/weights/key_map.h"
#include "posenc/weights/load.h"
#include "posenc/weights/manifest.h"
#include "posenc/weights/safetensors.h"
#include "posenc/weights/save.h"
#include "posenc/weights/state_dict.h"

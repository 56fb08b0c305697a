#pragma once

// The component posenc::inference. generate(), score(), and frozen stacks and Transformers.

#include "posenc/inference/encoded_sources.h"
#include "posenc/inference/freeze.h"
#include "posenc/inference/freeze_options.h"
#include "posenc/inference/generate.h"
#include "posenc/inference/generate_options.h"
#include "posenc/inference/score.h"

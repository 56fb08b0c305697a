#pragma once

// The component posenc::train. Optimisers, schedules, loaders, the trainer, checkpoints, data
// parallelism.

#include "posenc/train/checkpoint.h"
#include "posenc/train/clip_grad_norm.h"
#include "posenc/train/data_parallel.h"
#include "posenc/train/fused_adam.h"
#include "posenc/train/fused_sgd.h"
#include "posenc/train/group.h"
#include "posenc/train/lambda_lr.h"
#include "posenc/train/optimizer.h"
#include "posenc/train/option_ref.h"
#include "posenc/train/pair_loader.h"
#include "posenc/train/save.h"
#include "posenc/train/schedule_factor.h"
#include "posenc/train/sparse_adam.h"
#include "posenc/train/stop_signal.h"
#include "posenc/train/token_cross_entropy.h"
#include "posenc/train/trainer.h"

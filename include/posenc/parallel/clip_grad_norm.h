#pragma once

#include "posenc/core/module_ref.h"
#include "posenc/export.h"
#include "posenc/parallel/group.h"

namespace posenc POSENC_EXPORT {

/// Scales the gradients of `module` so that their total norm over the whole model is at most
/// `max_norm`, and returns the norm before. A shard's squares are summed over the group (one
/// allreduce, only if the module has shards); replicated parameters count once. All processes get
/// the same factor, bit for bit. Without shards it is torch.nn.utils.clip_grad_norm_ with dense and
/// sparse gradients. The norm is read, so a call waits for a GPU; TrainerOptions::clip_norm does
/// not.
///
/// Errors: c10::ValueError for a max_norm that is not positive; c10::TypeError for a gradient that
/// is neither dense nor sparse COO; GroupError.
double clip_grad_norm(const ModuleRef& module, double max_norm, const RankGroup& group = {});

}  // namespace posenc

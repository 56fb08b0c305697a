#pragma once

#include "posenc/core/module_ref.h"
#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// Scales the gradients of `module` so that their total norm is at most `max_norm`, and returns the
/// norm before: torch.nn.utils.clip_grad_norm_ for dense and sparse gradients. After
/// DataParallel::finish() all processes have the same gradients and so get the same factor, bit for
/// bit; nothing is sent. The norm is read, so a call waits for a GPU; TrainerOptions::clip_norm
/// does not.
///
/// Errors: c10::ValueError for a max_norm that is not positive; c10::TypeError for a gradient that
/// is neither dense nor sparse COO.
double clip_grad_norm(const ModuleRef& module, double max_norm);

}  // namespace posenc

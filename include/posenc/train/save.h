#pragma once

#include <string>

#include "posenc/train/group.h"
#include "posenc/weights/save.h"

namespace posenc POSENC_EXPORT {

/// save_weights() for a module of which each process of `group` has its copy; all of them call it.
/// Rank 0 writes the file that it would write alone, after all have compared names, dtypes and
/// shapes. load_weights() needs no group.
///
/// ```cpp
/// posenc::RankGroup group;  // a single process; gloo_group() makes others
/// posenc::TokenEmbedding module(100, 8);
/// posenc::save_weights(group, module, "embedding.safetensors");
/// ```
///
/// Errors: those of save_weights(); GroupError on the other processes if one cannot save, and on
/// all if their modules differ.
void save_weights(const RankGroup& group, const ConstModuleRef& module, const std::string& path,
                  const SaveOptions& options = {});

}  // namespace posenc

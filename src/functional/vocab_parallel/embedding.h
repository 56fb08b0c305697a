#pragma once

#include <functional>

#include "posenc/functional/vocab_parallel.h"

namespace posenc::functional {

/// vocab_parallel_embedding(); `check` throws for other errors of this process, before anything is
/// sent.
at::Tensor vocab_parallel_embedding(const at::Tensor& ids, const at::Tensor& weight,
                                    const VocabShard& shard, const RankGroup& group,
                                    const VocabParallelEmbeddingFuncOptions& options,
                                    const std::function<void()>& check);

/// Throws the errors of an index out of range, calling it `name`, on the host.
void check_range(const char* module, const char* name, const at::Tensor& index, int64_t vocab);

}  // namespace posenc::functional

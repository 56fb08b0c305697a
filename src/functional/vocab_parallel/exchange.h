#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "posenc/parallel/group.h"
#include "posenc/parallel/vocab_shard.h"

namespace posenc::functional {

/// How one call exchanges rows, one for each token, with the other processes.
///
/// A tensor of *all* rows has those of every process's tokens in the order of the ranks, and one of
/// *own* rows those of this process's tokens. With RankTokens::Same both are the same.
struct RowExchange {
  RankGroup group;
  const char* caller;            ///< in messages
  std::vector<int64_t> lengths;  ///< with Own: the number of own rows of each process
};

/// Agrees on the numbers of rows. `check` throws for invalid arguments of this process and returns
/// its number of rows. With Own, an exception of any process is one on all of them.
RowExchange start_exchange(const RankGroup& group, RankTokens tokens, const char* caller,
                           const std::function<int64_t()>& check);

/// All ids, (N), from own ones in [-1, vocab) of any shape.
at::Tensor gather_ids(const RowExchange& exchange, const at::Tensor& ids, int64_t vocab);

/// Own rows of the sum over the processes of `parts`, which are all rows. Each process uses the
/// result differently or, with Same, in the same way; its gradient is share_rows().
at::Tensor sum_rows_of_ranks(const RowExchange& exchange, const at::Tensor& parts);

/// All rows from own ones, which each process then uses in its own way; the gradient is
/// sum_rows_of_ranks().
at::Tensor share_rows(const RowExchange& exchange, const at::Tensor& rows);

/// Throws c10::ValueError unless `shard` is that of this process.
void check_shard(const char* caller, const VocabShard& shard, const RankGroup& group);

}  // namespace posenc::functional

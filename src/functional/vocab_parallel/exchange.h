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

/// The rows that one process was given.
struct RowCounts {
  static constexpr int64_t kNone = -1;
  RowCounts(int64_t of_own) : own(of_own) {}  // NOLINT: implicit by design
  RowCounts(int64_t of_own, int64_t of_all) : own(of_own), all(of_all) {}
  int64_t own;          ///< of its own tokens
  int64_t all = kNone;  ///< of an argument that must have a row for each token of all processes
};

/// Agrees on the numbers of rows. `check` throws for invalid arguments of this process and returns
/// its numbers of rows. With Own, an exception of any process is one on all of them, and so is a
/// number of all rows that is not the sum of all own ones.
RowExchange start_exchange(const RankGroup& group, RankTokens tokens, const char* caller,
                           const std::function<RowCounts()>& check);

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

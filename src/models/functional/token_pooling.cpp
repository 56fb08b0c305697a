// Ward's clustering as scipy has it: the same merges in the same order, also where distances are
// equal, and the same numbers of clusters.

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "inference/linear/projection.h"
#include "posenc/models/functional/pooling.h"

namespace posenc::functional {
namespace {

using Index = std::size_t;

// Two clusters that become one. Single rows are clusters 0 .. n - 1, and merge i is cluster n + i.
struct Merge {
  Index left, right;
  double distance;
};

// The merges of n rows whose distances are in a matrix (n, n), which is overwritten. Each step
// follows a chain of nearest neighbours until two are each other's, so that all take O(n^2).
class WardMerges {
 public:
  explicit WardMerges(std::vector<double> distances, Index n)
      : distances_(std::move(distances)), sizes_(n, 1.0) {
    while (merges_.size() + 1 < n) merge_next();
    std::stable_sort(merges_.begin(), merges_.end(),
                     [](const Merge& a, const Merge& b) { return a.distance < b.distance; });
    number();
  }

  const std::vector<Merge>& merges() const { return merges_; }

 private:
  double& distance(Index i, Index j) { return distances_[i * sizes_.size() + j]; }

  void merge_next() {
    if (chain_.empty()) {
      const auto first = std::find_if(sizes_.begin(), sizes_.end(), [](double n) { return n > 0; });
      chain_.push_back(static_cast<Index>(first - sizes_.begin()));
    }
    while (true) {
      const Index x = chain_.back(), n = sizes_.size();
      const bool has_previous = chain_.size() > 1;
      const Index previous = has_previous ? chain_[chain_.size() - 2] : x;
      // The previous one is preferred, or the chain might go round.
      Index nearest = previous;
      double least = has_previous ? distance(x, previous) : std::numeric_limits<double>::infinity();
      for (Index i = 0; i < n; ++i) {
        if (sizes_[i] == 0 || i == x || !(distance(x, i) < least)) continue;
        least = distance(x, i);
        nearest = i;
      }
      if (has_previous && nearest == previous) {
        chain_.resize(chain_.size() - 2);
        return merge(std::min(x, previous), std::max(x, previous), least);
      }
      chain_.push_back(nearest);
    }
  }

  // y becomes both.
  void merge(Index x, Index y, double apart) {
    const double of_x = sizes_[x], of_y = sizes_[y];
    merges_.push_back({x, y, apart});
    sizes_[x] = 0;
    sizes_[y] = of_x + of_y;
    for (Index i = 0; i < sizes_.size(); ++i) {
      const double own = sizes_[i];
      if (own == 0 || i == y) continue;
      const double t = 1.0 / (of_x + of_y + own), to_x = distance(i, x), to_y = distance(i, y);
      distance(i, y) = distance(y, i) =
          std::sqrt((own + of_x) * t * to_x * to_x + (own + of_y) * t * to_y * to_y -
                    own * t * apart * apart);
    }
  }

  // So far a cluster has the number of one of its rows.
  void number() {
    std::vector<Index> parents(2 * sizes_.size() - 1);
    std::iota(parents.begin(), parents.end(), Index{0});
    const auto root = [&](Index i) {
      while (parents[i] != i) i = parents[i] = parents[parents[i]];
      return i;
    };
    for (Index i = 0; i < merges_.size(); ++i) {
      const Index a = root(merges_[i].left), b = root(merges_[i].right);
      merges_[i].left = std::min(a, b);
      merges_[i].right = std::max(a, b);
      parents[a] = parents[b] = sizes_.size() + i;
    }
  }

  std::vector<double> distances_, sizes_;
  std::vector<Index> chain_;
  std::vector<Merge> merges_;
};

// The cluster of each row, numbered from 0 in scipy's order, of at most `most` clusters.
std::vector<int64_t> cut(const std::vector<Merge>& merges, Index most) {
  const Index n = merges.size() + 1;
  const double threshold = merges[n - 1 - most].distance;
  std::vector<int64_t> clusters(n);
  std::vector<Index> path = {n - 2};
  std::vector<bool> is_visited(n - 1, false);
  int64_t count = 0;
  Index cluster = n;  // the merge whose rows are one; n for none
  while (!path.empty()) {
    const Index merge = path.back();
    const auto [left, right, distance] = merges[merge];
    if (cluster == n && distance <= threshold) {
      cluster = merge;
      ++count;
    }
    const auto is_ahead = [&](Index child) { return child >= n && !is_visited[child - n]; };
    if (is_ahead(left) || is_ahead(right)) {
      path.push_back((is_ahead(left) ? left : right) - n);
      is_visited[path.back()] = true;
      continue;
    }
    for (const Index child : {left, right}) {
      if (child >= n) continue;
      if (cluster == n) ++count;  // a row by itself
      clusters[child] = count - 1;
    }
    if (cluster == merge) cluster = n;
    path.pop_back();
  }
  return clusters;
}

// 1 - x_i . x_j, by products whose bits do not depend on the number of threads.
at::Tensor distances(const at::Tensor& rows) {
  const at::Tensor x = rows.detach().to(at::kFloat).contiguous();
  const at::Tensor products = inference::Projection(x, {}, inference::kAlwaysNative).rows(x);
  return at::rsub(products, 1).clamp_(0, 2).to(at::kDouble);
}

}  // namespace

at::Tensor hierarchical_token_pool(const at::Tensor& tokens, double pool_factor,
                                   int64_t num_protected_tokens) {
  constexpr const char* kName = "hierarchical_token_pool";
  TORCH_CHECK_TYPE(tokens.is_floating_point(), "[", kName, "] tokens must be floating-point. Got ",
                   tokens.scalar_type());
  TORCH_CHECK_VALUE(tokens.dim() == 2 && tokens.is_cpu(), "[", kName,
                    "] tokens must be (T, D) on the CPU. Got ", tokens.sizes());
  TORCH_CHECK_VALUE(pool_factor >= 1.0, "[", kName, "] pool_factor must be at least 1. Got ",
                    pool_factor);
  TORCH_CHECK_VALUE(num_protected_tokens >= 0, "[", kName,
                    "] num_protected_tokens must not be negative. Got ", num_protected_tokens);
  const int64_t kept = std::min(num_protected_tokens, tokens.size(0));
  const int64_t count = tokens.size(0) - kept;
  const auto n = static_cast<double>(count);  // floor() of the exact quotient, as Python's // is
  const auto most =
      std::max<int64_t>(std::llround((n - std::fmod(n, pool_factor)) / pool_factor), 1);
  if (most >= count) return tokens;
  const at::Tensor rows = tokens.narrow(0, kept, count);
  const at::Tensor apart = distances(rows);
  TORCH_CHECK_VALUE(apart.isfinite().all().item<bool>(), "[", kName,
                    "] tokens must be finite. Got others");
  const auto* const begin = apart.const_data_ptr<double>();
  const WardMerges ward({begin, begin + apart.numel()}, static_cast<Index>(count));
  const at::Tensor clusters = at::tensor(cut(ward.merges(), static_cast<Index>(most)), at::kLong);
  const at::Tensor sizes = clusters.bincount().to(tokens.scalar_type()).unsqueeze(1);
  const at::Tensor sums = at::zeros({sizes.size(0), tokens.size(1)}, tokens.options());
  return at::cat({tokens.narrow(0, 0, kept), sums.index_add(0, clusters, rows) / sizes});
}

}  // namespace posenc::functional

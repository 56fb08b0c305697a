#include <ATen/core/grad_mode.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <vector>

#include "core/torch_internals/parts.h"
#include "kernels/dispatch.h"
#include "posenc/models/functional/similarity.h"

namespace posenc::functional {
namespace {

namespace kernel = kernels::inference;

// Documents that stay in the L2 cache while queries pass.
constexpr int64_t kBlockFloats = int64_t{1} << 16;
constexpr int64_t kQueriesAtOnce = 16;

// Texts whose rows are in memory without gaps: the first row of each, and the end of the last.
struct Rows {
  at::Tensor embeddings;
  std::vector<int64_t> first = {0};

  Rows(const char* name, const MultiVectors& of) {
    const at::Tensor &x = of.embeddings, &lengths = of.lengths;
    TORCH_CHECK_TYPE(x.defined() && x.is_floating_point() && lengths.defined() &&
                         lengths.scalar_type() == at::kLong,
                     "[maxsim] ", name,
                     " must have floating-point embeddings and int64 lengths. Got others");
    TORCH_CHECK_VALUE(x.dim() == 2 && lengths.dim() == 1 && x.is_cpu() && lengths.is_cpu(),
                      "[maxsim] ", name,
                      " must have embeddings (T, D) and lengths (N) on the CPU. Got ", x.sizes(),
                      " and ", lengths.sizes());
    embeddings = x.to(at::kFloat).contiguous();
    const at::Tensor counts = lengths.contiguous();
    for (int64_t i = 0; i < counts.numel(); ++i) {
      const int64_t count = counts.const_data_ptr<int64_t>()[i];
      TORCH_CHECK_VALUE(count >= 0 && count <= x.size(0), "[maxsim] lengths of ", name,
                        " must lie between 0 and the number of rows, ", x.size(0), ". Got ", count,
                        " at index ", i);
      first.push_back(first.back() + count);
    }
    TORCH_CHECK_VALUE(first.back() == x.size(0), "[maxsim] lengths of ", name,
                      " must add up to the number of rows, ", x.size(0), ". Got ", first.back());
  }

  int64_t size() const { return static_cast<int64_t>(first.size()) - 1; }
  int64_t rows(int64_t i) const {
    return first[static_cast<std::size_t>(i) + 1] - first[static_cast<std::size_t>(i)];
  }
  const float* row(int64_t i) const {
    return embeddings.const_data_ptr<float>() +
           first[static_cast<std::size_t>(i)] * embeddings.size(1);
  }
};

// Queries as the kernel takes them, and where each begins.
struct PackedQueries {
  at::Tensor memory;
  std::vector<int64_t> first;

  explicit PackedQueries(const Rows& queries) {
    const int64_t width = queries.embeddings.size(1);
    int64_t floats = 0;
    for (int64_t i = 0; i < queries.size(); ++i) {
      first.push_back(floats);
      floats += kernel::maxsim_floats(queries.rows(i), width);
    }
    memory = at::empty({floats}, at::kFloat);
    for (int64_t i = 0; i < queries.size(); ++i)
      kernels::chosen_inference().maxsim.pack(
          queries.row(i), queries.rows(i), width,
          memory.data_ptr<float>() + first[static_cast<std::size_t>(i)]);
  }
};

// The first document of each block, and the end of the last.
std::vector<int64_t> blocks_of(const Rows& documents) {
  std::vector<int64_t> begins = {0};
  int64_t floats = 0;
  for (int64_t i = 0; i < documents.size(); ++i) {
    const int64_t own = documents.rows(i) * documents.embeddings.size(1);
    if (floats > 0 && floats + own > kBlockFloats) {
      begins.push_back(i);
      floats = 0;
    }
    floats += own;
  }
  begins.push_back(documents.size());
  return begins;
}

}  // namespace

at::Tensor maxsim(const MultiVectors& queries, const MultiVectors& documents,
                  const MaxSimOptions& options) {
  const at::NoGradGuard no_grad;
  const Rows of_queries("queries", queries), of_documents("documents", documents);
  const int64_t width = of_queries.embeddings.size(1), count = of_queries.size();
  TORCH_CHECK_VALUE(of_documents.embeddings.size(1) == width,
                    "[maxsim] queries and documents must have vectors of one width. Got ", width,
                    " and ", of_documents.embeddings.size(1));
  const at::Tensor scores = at::empty({count, of_documents.size()}, at::kFloat);
  if (scores.numel() == 0) return scores;
  const PackedQueries packed(of_queries);
  const std::vector<int64_t> blocks = blocks_of(of_documents);
  const int64_t chunks = (count + kQueriesAtOnce - 1) / kQueriesAtOnce;
  const int64_t items = (static_cast<int64_t>(blocks.size()) - 1) * chunks;
  torch_internals::parallel_parts(0, items, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const auto block = static_cast<std::size_t>(item / chunks);
      const int64_t query = item % chunks * kQueriesAtOnce;
      for (int64_t i = query; i < std::min(query + kQueriesAtOnce, count); ++i) {
        const auto at = static_cast<std::size_t>(i);
        kernels::chosen_inference().maxsim.score(
            {packed.memory.const_data_ptr<float>() + packed.first[at], of_queries.rows(i), width,
             of_documents.embeddings.const_data_ptr<float>(), of_documents.first.data(),
             scores.data_ptr<float>() + i * scores.size(1)},
            blocks[block], blocks[block + 1]);
      }
    }
  });
  if (options.mean()) scores.div_(queries.lengths.clamp_min(1).to(at::kFloat).unsqueeze(1));
  return scores;
}

}  // namespace posenc::functional

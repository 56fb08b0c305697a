#include "inference/linear/linear.h"

#include <algorithm>

#include "base/platform/memory.h"
#include "core/torch_internals/parts.h"
#include "kernels/dispatch.h"

namespace posenc::inference {
namespace {

namespace kernel = kernels::inference;

constexpr int64_t kColumns = 16;             // one cache line in a row of the result
constexpr int64_t kGrainProducts = 1 << 16;  // least work per thread

template <typename Element>
void run_columns(const kernel::LinearRequestOf<Element>& request, bool many,
                 const kernel::LinearKernelsOf<Element>& linear) {
  const auto columns = [&](int64_t begin, int64_t end) {  // in cache lines
    float* const panel =
        many ? platform::scratch(platform::Scratch::Panel, kernel::scratch_floats(request.inner))
             : nullptr;
    linear.run(request, begin * kColumns, std::min(end * kColumns, request.outer), panel);
  };
  const int64_t lines = (request.outer + kColumns - 1) / kColumns;
  const int64_t grain =
      std::max<int64_t>(1, kGrainProducts / (kColumns * request.inner * request.rows));
  torch_internals::parallel_parts(0, lines, grain, columns);
}

template <typename Element>
void run_part(kernel::LinearRequestOf<Element> request, bool many,
              const kernel::LinearKernelsOf<Element>& linear, ColumnPart part) {
  request.weight += part.begin * request.inner;
  if (request.bias != nullptr) request.bias += part.begin;
  request.outer = part.end - part.begin;
  float* const panel =
      many ? platform::scratch(platform::Scratch::Panel, kernel::scratch_floats(request.inner))
           : nullptr;
  linear.run(request, 0, request.outer, panel);
}

}  // namespace

void share_work(int64_t count, int64_t work_of_one, int64_t least_work,
                const std::function<void(int64_t, int64_t)>& work) {
  torch_internals::parallel_parts(
      0, count, std::max<int64_t>(1, least_work / std::max<int64_t>(1, work_of_one)), work);
}

RowRegime row_regime(int64_t rows) {
  return rows == 1 ? RowRegime::One : rows <= kernel::kFewRows ? RowRegime::Few : RowRegime::Many;
}

void run_linear(const kernel::LinearRequest& request, RowRegime regime) {
  const kernels::InferenceKernels& set = kernels::chosen_inference();
  const bool many = regime == RowRegime::Many;
  run_columns(request, many, many ? set.linear_many : set.linear_few);
}

void run_linear(const kernel::LinearRequestOf<kernel::BFloat16>& request, RowRegime regime) {
  const kernels::InferenceKernels& set = kernels::chosen_inference();
  const bool many = regime == RowRegime::Many;
  run_columns(request, many, many ? set.linear_many_bfloat16 : set.linear_few_bfloat16);
}

void run_linear(const kernel::LinearRequest& request, RowRegime regime, ColumnPart part) {
  const kernels::InferenceKernels& set = kernels::chosen_inference();
  const bool many = regime == RowRegime::Many;
  run_part(request, many, many ? set.linear_many : set.linear_few, part);
}

void run_linear(const kernel::LinearRequestOf<kernel::BFloat16>& request, RowRegime regime,
                ColumnPart part) {
  const kernels::InferenceKernels& set = kernels::chosen_inference();
  const bool many = regime == RowRegime::Many;
  run_part(request, many, many ? set.linear_many_bfloat16 : set.linear_few_bfloat16, part);
}

}  // namespace posenc::inference

#include "posenc/sinusoid/identify.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "sinusoid/identify/report.h"
#include "sinusoid/identify/search.h"

namespace posenc {
namespace {

using namespace identification;

bool is_known(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  return tensor.layout() == at::kStrided &&
         (type == at::kFloat || type == at::kDouble || type == at::kHalf || type == at::kBFloat16);
}

Identification rejected(const char* verdict) {
  Identification result;
  result.verdict = verdict;
  return result;
}

}  // namespace

Identification identify(const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.defined(), "[identify] tensor must be defined. Got an undefined one");
  const at::NoGradGuard no_grad;
  if (!is_known(tensor)) return rejected("not a sinusoid: no dense floating-point tensor");
  if (tensor.is_meta() || readable(tensor.sizes()) == 0) {
    return rejected("too small to tell: a table has at least 3 rows and 4 channels");
  }
  if (!may_be_sinusoid(tensor)) return rejected("not a sinusoid");

  const at::Tensor narrow = narrowed(tensor.detach().to(at::kCPU));
  std::optional<Finding> best;
  for (const Reading& reading : readings(narrow)) {
    const auto table = examined(reading);
    if (!table) continue;
    auto found = search(*table);
    if (found && (!best || found->better_than(*best))) best = std::move(found);
    if (best && best->exact()) break;
  }
  return best ? report(*best) : rejected("not a sinusoid");
}

}  // namespace posenc

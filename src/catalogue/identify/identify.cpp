#include "posenc/catalogue/identify.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <cctype>
#include <string_view>

#include "catalogue/identify/search.h"

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

// Whether a component of the dotted name is an attention module, or names rotary embeddings:
// tables to be added to embeddings do not occur there.
bool is_rotary_name(std::string_view name) {
  std::string part;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    if (i < name.size() && name[i] != '.') {
      part += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
      continue;
    }
    const bool module = i < name.size();  // the last component is the tensor's own name
    if (module && (part == "attn" || part == "self_attn" || part == "attention" ||
                   part == "self_attention")) {
      return true;
    }
    if (part.find("rotary") != std::string::npos || part == "rope") return true;
    part.clear();
  }
  return false;
}

}  // namespace

Identification identify(const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.defined(), "[identify] tensor must be defined");
  const at::NoGradGuard no_grad;
  if (!is_known(tensor)) return rejected("not a sinusoid: no dense floating-point tensor");
  if (tensor.is_meta() || count_table_views(tensor.sizes()) == 0) {
    return rejected("too small to tell: a table has at least 3 rows and 4 channels");
  }
  if (!may_be_sinusoid(tensor)) return rejected("not a sinusoid");

  const at::Tensor narrow = to_narrowest_dtype(tensor.detach().to(at::kCPU));
  std::optional<SearchResult> best;
  for (const TableView& view : table_views(narrow)) {
    const auto table = without_learned_rows(view);
    if (!table) continue;
    auto found = search(*table);
    if (found && (!best || found->better_than(*best))) best = std::move(found);
    if (best && best->exact()) break;
  }
  return best ? report(*best) : rejected("not a sinusoid");
}

Identification identify(const at::Tensor& tensor, const std::string& name) {
  Identification found = identify(tensor);
  if (found.sinusoid && is_rotary_name(name)) {
    found.sinusoid = false;
    found.presets.clear();
    found.verdict = "a rotary cache by its place, with the numbers of " + found.nearest;
  }
  return found;
}

}  // namespace posenc

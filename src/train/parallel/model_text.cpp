#include "train/parallel/model_text.h"

#include <c10/util/StringUtil.h>
#include <torch/nn/module.h>

#include <vector>

#include "posenc/core/state_dict_traits.h"
#include "posenc/version.h"

namespace posenc::parallel {
namespace {

void add_computed(const torch::nn::Module& module, ComputedTensors& tables) {
  for (const auto& child : module.named_children()) add_computed(*child.value(), tables);
  const auto* const traits = dynamic_cast<const StateDictTraits*>(&module);
  if (traits == nullptr) return;
  const auto all = traits->computed_tables();
  if (all.empty()) return;
  const auto buffers = module.named_buffers();
  for (const ComputedTable& table : all) {
    const at::Tensor* const tensor = buffers.find(table.name);
    if (tensor != nullptr) tables.emplace(tensor->unsafeGetTensorImpl(), table.row_axis);
  }
}

}  // namespace

ComputedTensors computed_tensors(const torch::nn::Module& module) {
  ComputedTensors tables;
  add_computed(module, tables);
  return tables;
}

namespace {

// The lines of one text.
class Lines {
 public:
  explicit Lines(const torch::nn::Module& module) : tables_(computed_tensors(module)) {}

  void add(const std::string& name, const at::Tensor& tensor) {
    if (tensor.defined()) {
      const auto [first, is_new] = first_names_.emplace(tensor.unsafeGetTensorImpl(), name);
      if (!is_new) {
        text += c10::str(name, ": the same as ", first->second, "\n");
        return;
      }
    }
    text += c10::str(name, ": ", tensor_text(tensor), "\n");
  }

  std::string text;

 private:
  std::string tensor_text(const at::Tensor& tensor) const {
    if (!tensor.defined()) return "undefined";
    if (tensor.layout() != at::kStrided) return c10::str(tensor.layout());
    std::vector<int64_t> sizes = tensor.sizes().vec();
    const auto table = tables_.find(tensor.unsafeGetTensorImpl());
    const bool computed = table != tables_.end();
    if (computed) sizes.erase(sizes.begin() + table->second);
    return c10::str(tensor.scalar_type(), " ", at::IntArrayRef(sizes),
                    computed ? std::string(" computed") : c10::str(" strides ", tensor.strides()),
                    tensor.requires_grad() ? " requires_grad" : "", " on ", tensor.device().type());
  }

  const ComputedTensors tables_;
  std::unordered_map<const at::TensorImpl*, std::string> first_names_;
};

void add_buffers(const torch::nn::Module& module, Lines& lines) {
  for (const auto& item : module.named_buffers()) lines.add("buffer " + item.key(), item.value());
}

}  // namespace

std::string model_text(const torch::nn::Module& module) {
  Lines lines(module);
  lines.text = c10::str("posenc ", version(), "\n");
  for (const auto& item : module.named_parameters())
    lines.add("parameter " + item.key(), item.value());
  add_buffers(module, lines);
  return lines.text;
}

std::string buffers_text(const torch::nn::Module& module) {
  Lines lines(module);
  add_buffers(module, lines);
  return lines.text;
}

}  // namespace posenc::parallel

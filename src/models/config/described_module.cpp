#include "models/config/described_module.h"

#include <torch/nn/module.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "core/torch_internals/without_memory.h"
#include "weights/common/module_state.h"
#include "weights/load/mapped_source.h"

namespace posenc {
namespace {

using Shapes = std::map<std::string, std::vector<int64_t>>;

std::shared_ptr<torch::nn::Module> module_without_memory(const DescribedModule& described,
                                                         const Settings* changed) {
  const torch_internals::WithoutMemory guard;
  return described.make(changed);
}

Shapes shapes_of_module(const DescribedModule& described, const Settings* changed) {
  Shapes shapes;
  const auto module = module_without_memory(described, changed);
  for (const auto& item : io::module_state(*module).tensors)
    shapes.emplace(item.key(), item.value().sizes().vec());
  return shapes;
}

Shapes shapes_of_source(const io::TensorSource& source, const LoadOptions& load) {
  Shapes shapes;
  const io::MappedSource mapped(source, load);
  for (const auto& entry : mapped.entries())
    if (entry.name) shapes.emplace(*entry.name, entry.sizes);
  return shapes;
}

// Whether what a change of a setting changes of a module is other than that of a file in all cases:
// then it is the setting that is wrong, and not one tensor.
struct Blame {
  bool decides = false;  // whether the change changes anything that the file has
  bool is_wrong = true;

  Blame(const Shapes& module, const Shapes& changed, const Shapes& file) {
    for (const auto& [name, sizes] : module) {
      const auto other = changed.find(name), own = file.find(name);
      if (other == changed.end() || own == file.end()) continue;
      const bool have_axes =
          other->second.size() == sizes.size() && own->second.size() == sizes.size();
      for (std::size_t axis = 0; have_axes && axis < sizes.size(); ++axis) {
        if (other->second[axis] == sizes[axis]) continue;
        decides = true;
        is_wrong &= own->second[axis] != sizes[axis];
      }
    }
  }
};

// The settings that have other sizes than the file, each changed to see which it decides. What must
// divide another number, or be divided by one, may be twice or half as large.
std::string wrong_settings(const DescribedModule& described, const Shapes& file) {
  const Shapes module = shapes_of_module(described, nullptr);
  const auto is_wrong = [&](const std::string& name, int64_t value) {
    for (const int64_t other : {value + 1, 2 * value, value / 2}) {
      try {
        const Settings changed = described.settings->with_value(name, other);
        const Blame blame(module, shapes_of_module(described, &changed), file);
        if (blame.decides) return blame.is_wrong;
      } catch (const std::exception&) {  // there is no such module
      }
    }
    return false;
  };
  std::string names;
  for (const std::string& name : described.settings->names_of_integers()) {
    const auto value = described.settings->value(name).get<int64_t>();
    if (value < 1 || value > INT32_MAX || !is_wrong(name, value)) continue;
    names += (names.empty() ? "" : ", ") + described.settings->key(name);
  }
  return names;
}

}  // namespace

std::unique_ptr<io::LoadPlan> plan_of(const DescribedModule& described,
                                      const io::TensorSource& source, const LoadOptions& load,
                                      const io::FormatNames& names) {
  const auto module = module_without_memory(described, nullptr);
  try {
    return std::make_unique<io::LoadPlan>(*module, source, load, names);
  } catch (const WeightsError& error) {
    if (error.code() != WeightsErrorCode::ShapeMismatch) throw;
    const std::string wrong = described.settings == nullptr
                                  ? described.others
                                  : wrong_settings(described, shapes_of_source(source, load));
    if (wrong.empty()) throw;
    TORCH_CHECK_VALUE(
        false, "[", described.caller, "] ", described.folder, ": ", wrong,
        " in config.json must fit the weights:", io::lines_of(error.details().mismatched, 2));
  }
}

}  // namespace posenc

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "weights/common/keyed_hash.h"
#include "weights/torch/state_dict_walker.h"
#include "weights/torch/zip/archive.h"

namespace posenc::io {

/// The names that the classes of a TorchScript archive register. Their code is searched for these
/// lists, not compiled; a class whose code is missing or looks different is unknown.
class ScriptCode {
 public:
  explicit ScriptCode(const Archive& archive) : archive_(archive) {}

  /// The class with a qualified name (`__torch__.torch.nn.modules.linear.Linear`), or null.
  const ScriptClass* find(const std::string& qualified_name);

 private:
  using Classes = NameMap<ScriptClass>;
  const Classes& file(const std::string& module);

  const Archive& archive_;
  uint64_t left_ = uint64_t{32} << 20;  // bytes of code that may still be unpacked
  NameMap<Classes> files_;
};

/// The classes defined in a file of code, by name.
NameMap<ScriptClass> script_classes(std::string_view code);

}  // namespace posenc::io

#pragma once

#include <string>
#include <vector>

#include "cli/modules/module_spec.h"

namespace posenc::cli {

/// A key in the file and the names of its axes; an axis named "1" has size 1.
struct Key {
  std::string name;
  std::vector<std::string> axes;
  std::string own;  ///< the C++ module's key, if different
};

/// A row of the registry: the files that it matches, and how to make the C++ module.
struct Kind {
  std::string module;              ///< C++ class
  std::vector<std::string> names;  ///< class names in files and for --module
  std::string source;
  std::vector<Key> keys;
  bool by_keys = false;  ///< the keys identify it without a class name
  Input input = Input::Ids;
  std::vector<std::string> inputs;
  std::string table_key = {};  ///< empty if there is no table
  std::vector<std::string> params = {};
  std::vector<std::string> optional = {};
  std::map<std::string, std::string> aliases = {};  ///< a script's argument name: ours
  /// Sets `module` and `forward` from `sizes`.
  void (*build)(const Params& params, const Weights& weights, ModuleSpec& spec);
};

/// The registry. The combination of name and keys is unique.
const std::vector<Kind>& kinds();

}  // namespace posenc::cli

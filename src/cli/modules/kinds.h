#pragma once

#include <string>
#include <vector>

#include "cli/modules/module_spec.h"

namespace posenc::cli {

/// A key of the file and the names of its axes; an axis named "1" has that size.
struct Key {
  std::string name;
  std::vector<std::string> axes;
  std::string own;  ///< the C++ module's key where it is another
};

/// A row of the table of counterparts: which files it is for, and how the C++ module is made.
struct Kind {
  std::string module;              ///< C++ class
  std::vector<std::string> names;  ///< classes in files, and what --module takes
  std::string source;
  std::vector<Key> keys;
  bool by_keys;  ///< these keys are telling: they need no class name
  Input input;
  std::vector<std::string> inputs;
  std::string table_key;
  std::vector<std::string> params;
  std::vector<std::string> optional;
  std::map<std::string, std::string> aliases;  ///< a script's name of an argument: the one here
  /// Fills in `module` and `forward` from `sizes`.
  void (*build)(const Params& params, const Weights& weights, ModuleSpec& spec);
};

/// All counterparts. A name and the keys together are unique.
const std::vector<Kind>& kinds();

}  // namespace posenc::cli

#include "posenc/io/state_dict.h"

#include "io/base/targets.h"

namespace posenc {

StateDict state_dict(const ConstModuleRef& module) { return io::module_state(*module).tensors; }

}  // namespace posenc

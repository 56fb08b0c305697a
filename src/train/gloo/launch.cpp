#include "train/gloo/launch.h"

#include <c10/util/Exception.h>

#include <cstdlib>
#include <limits>

#include "base/platform/number.h"

namespace posenc::gloo {
namespace {

/// An environment variable; one that is set to nothing counts as missing.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

int number(const char* name, int least, int most) {
  const std::string text = variable(name);
  const auto value = platform::parse_number<int>(text);
  TORCH_CHECK_VALUE(value && *value >= least && *value <= most, "[group_from_environment] ", name,
                    " must be an integer from ", least, " to ", most, ". Got `", text, "`");
  return *value;
}

void require(const char* name, const char* because_of) {
  TORCH_CHECK_VALUE(!variable(name).empty(), "[group_from_environment] ", name,
                    " must be set, since ", because_of, " is",
                    because_of == std::string("SLURM_PROCID")
                        ? "; in a batch script, start the program with srun, or unset SLURM_PROCID "
                          "for a single process"
                        : "");
}

/// The variables of a launcher. The first whose rank is set counts: torchrun may be started by
/// srun, and mpirun inside an allocation of SLURM, which sets its variables for the script itself.
struct Launcher {
  const char* rank;
  const char* size;
};
constexpr Launcher kLaunchers[] = {{"RANK", "WORLD_SIZE"},
                                   {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                   {"PMI_RANK", "PMI_SIZE"},
                                   {"SLURM_PROCID", "SLURM_NTASKS"}};

const Launcher* find_launcher() {
  for (const Launcher& launcher : kLaunchers) {
    if (!variable(launcher.rank).empty()) return &launcher;
  }
  for (const char* name : {"WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    TORCH_CHECK_VALUE(variable(name).empty(), "[group_from_environment] RANK must be set, since ",
                      name, " is");
  }
  return nullptr;
}

}  // namespace

std::optional<Launch> launch_from_environment() {
  const Launcher* launcher = find_launcher();
  if (!launcher) return std::nullopt;
  require(launcher->size, launcher->rank);
  Launch launch;
  launch.size = number(launcher->size, 1, std::numeric_limits<int>::max());
  launch.rank = number(launcher->rank, 0, launch.size - 1);
  if (launch.size == 1) return launch;
  require("MASTER_ADDR", launcher->rank);
  require("MASTER_PORT", launcher->rank);
  launch.address = variable("MASTER_ADDR");
  launch.port = static_cast<uint16_t>(number("MASTER_PORT", 1, 65535));
  launch.agent_serves = variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  const std::string attempt = variable("TORCHELASTIC_RESTART_COUNT");
  if (!attempt.empty()) launch.attempt = attempt;
  return launch;
}

}  // namespace posenc::gloo

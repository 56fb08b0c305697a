#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <optional>

namespace posenc::testing {

/// The host waits for the device.
void count_wait();

/// Runs an operator on copies of the arguments by the CPU's kernel of this key, and copies back.
void by_the_host(const c10::OperatorHandle& op, torch::jit::Stack* stack, c10::DispatchKey key);

/// The generator of the CPU inside a generator of the device; by default inside the default one.
at::Generator host_generator(const std::optional<at::Generator>& generator);

}  // namespace posenc::testing

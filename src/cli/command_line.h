#pragma once

namespace posenc::cli {

/// All of `posenc`: its exit status, 0 fine, 1 the check failed or the input was refused, 2 wrong
/// use, 128 + the signal's number where a signal has stopped a training.
int command_line(int argc, char** argv);

}  // namespace posenc::cli

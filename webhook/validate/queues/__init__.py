"""What must hold for a Queue, alone and among the others: `queue` puts the parts together. No I/O."""

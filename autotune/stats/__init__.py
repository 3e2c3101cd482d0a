"""What figures can prove. Pure."""
